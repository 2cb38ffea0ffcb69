//! How much may there be in an operation, and in a log of them?

use super::{AccountData, Operation, OperationFault};

/// Limits of operations and logs. A limit that is broken is named in the refusal.
///
/// The specification allows 7,500 bytes an operation and 5 rotation keys, none twice; but the
/// directory takes 10, and valid logs are known with a key that is there twice and with none at all.
/// The defaults are what the directory takes, and for bytes what the specification allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the JSON of a log. 8 MiB.
    pub log_bytes: usize,
    /// Operations in a log. 10,000.
    pub operations: usize,
    /// Bytes of the DAG-CBOR of a signed operation. 7,500.
    pub operation_bytes: usize,
    /// Rotation keys. 10.
    pub rotation_keys: usize,
    /// Verification methods. 10.
    pub verification_methods: usize,
    /// Bytes of the name of a verification method. 32.
    pub verification_method_id_bytes: usize,
    /// Bytes of the key of a verification method. 256.
    pub verification_method_key_bytes: usize,
    /// Names of the account. 10.
    pub also_known_as: usize,
    /// Bytes of a name of the account. 258.
    pub also_known_as_bytes: usize,
    /// Services. 10.
    pub services: usize,
    /// Bytes of the name of a service. 32.
    pub service_id_bytes: usize,
    /// Bytes of the type of a service. 256.
    pub service_type_bytes: usize,
    /// Bytes of the endpoint of a service. 512.
    pub service_endpoint_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            log_bytes: 8 << 20,
            operations: 10_000,
            operation_bytes: 7500,
            rotation_keys: 10,
            verification_methods: 10,
            verification_method_id_bytes: 32,
            verification_method_key_bytes: 256,
            also_known_as: 10,
            also_known_as_bytes: 258,
            services: 10,
            service_id_bytes: 32,
            service_type_bytes: 256,
            service_endpoint_bytes: 512,
        }
    }
}

impl Limits {
    /// Checks one operation.
    ///
    /// # Errors
    /// If a limit is broken: [`OperationFault::Limit`].
    pub fn check(&self, operation: &Operation) -> Result<(), OperationFault> {
        at_most(self.operation_bytes, operation.to_bytes().len(), "operation_bytes")?;
        match operation.unsigned().to_data() {
            Some(data) => self.check_data(&data),
            None => Ok(()),
        }
    }

    fn check_data(&self, data: &AccountData) -> Result<(), OperationFault> {
        at_most(self.rotation_keys, data.rotation_keys.len(), "rotation_keys")?;
        at_most(self.also_known_as, data.also_known_as.len(), "also_known_as")?;
        for name in &data.also_known_as {
            at_most(self.also_known_as_bytes, name.len(), "also_known_as_bytes")?;
        }
        let methods = &data.verification_methods;
        at_most(self.verification_methods, methods.len(), "verification_methods")?;
        for (id, key) in methods {
            at_most(self.verification_method_id_bytes, id.len(), "verification_method_id_bytes")?;
            at_most(
                self.verification_method_key_bytes,
                key.len(),
                "verification_method_key_bytes",
            )?;
        }
        at_most(self.services, data.services.len(), "services")?;
        for (id, service) in &data.services {
            at_most(self.service_id_bytes, id.len(), "service_id_bytes")?;
            at_most(self.service_type_bytes, service.kind.len(), "service_type_bytes")?;
            let endpoint = service.endpoint.len();
            at_most(self.service_endpoint_bytes, endpoint, "service_endpoint_bytes")?;
        }
        Ok(())
    }
}

pub(super) fn at_most(
    limit: usize,
    count: usize,
    name: &'static str,
) -> Result<(), OperationFault> {
    if count > limit { Err(OperationFault::Limit(name)) } else { Ok(()) }
}
