//! Inverses modulo an odd number, by division steps.
//!
//! Bernstein and Yang, "Fast constant-time gcd computation and modular inversion" (CHES 2019): the pair f = M, g = x is
//! reduced to f = ±1, g = 0 by steps that look at the lowest bits only. Sixty-two steps at a time are done on one word
//! of both numbers, and their matrix is applied to the whole numbers, and modulo M to the pair d, e, for which
//!
//! ```text
//! d·x ≡ f,  e·x ≡ g  (mod M)        so that in the end ±d is the inverse of x
//! ```
//!
//! All input is public, so runs of zero bits are skipped and up to six steps are done at once.

/// A signed number: limbs of 62 bits, least significant first, the last one with the sign.
type Limbs = [i64; 5];

/// A number of 256 bits, least significant word first.
type Words = [u64; 4];

/// The inverse of a number below the modulus, and 0 of 0. The modulus is odd and above 2²⁵⁵.
pub(super) fn invert(number: &Words, modulus: &Words) -> Words {
    let modulo = Modulo { limbs: limbs_of(modulus), inverse: inverse_of_word(modulus[0]) };
    let (mut d, mut e) = ([0; 5], [1, 0, 0, 0, 0]);
    let (mut f, mut g) = (modulo.limbs, limbs_of(number));
    let mut eta = -1;
    while g != [0; 5] {
        let steps;
        (steps, eta) = Steps::of(eta, f[0] as u64, g[0] as u64);
        (d, e) = steps.apply_modulo(&d, &e, &modulo);
        (f, g) = steps.apply(&f, &g);
    }
    // d is from −2M to M, so one M may not be enough.
    let lifted = modulo.lift(&d);
    let signed = if f[4] < 0 { negate(&lifted) } else { lifted };
    words_of(&modulo.lift(&signed))
}

/// Sixty-two division steps: f' = (u·f + v·g)/2⁶², g' = (q·f + r·g)/2⁶².
struct Steps {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

impl Steps {
    /// The steps for the lowest bits of f and g, and the next eta (the δ of the paper with its sign changed).
    fn of(mut eta: i64, mut f: u64, mut g: u64) -> (Self, i64) {
        let mut u = 1_u64;
        let mut v = 0_u64;
        let mut q = 0_u64;
        let mut r = 1_u64;
        let mut left = 62;
        loop {
            let zeros = (g | u64::MAX << left).trailing_zeros();
            (g, u, v) = (g >> zeros, u << zeros, v << zeros);
            eta -= i64::from(zeros);
            left -= zeros;
            if left == 0 {
                let [u, v, q, r] = [u, v, q, r].map(|entry| entry as i64);
                return (Self { u, v, q, r }, eta);
            }
            if eta < 0 {
                eta = -eta;
                (f, g) = (g, f.wrapping_neg());
                (u, q) = (q, u.wrapping_neg());
                (v, r) = (r, v.wrapping_neg());
            }
            // g + w·f ends in as many zeros as there are steps before the next swap. 1/f is f·(2 − f²) modulo 64.
            let count = (eta + 1).min(i64::from(left)).min(6);
            let minus_inverse = f.wrapping_mul(f.wrapping_mul(f).wrapping_sub(2));
            let w = g.wrapping_mul(minus_inverse) & ((1 << count) - 1);
            g = g.wrapping_add(f.wrapping_mul(w));
            q = q.wrapping_add(u.wrapping_mul(w));
            r = r.wrapping_add(v.wrapping_mul(w));
        }
    }

    /// The new f and g.
    fn apply(&self, f: &Limbs, g: &Limbs) -> (Limbs, Limbs) {
        (combine(self.u, f, self.v, g), combine(self.q, f, self.r, g))
    }

    /// The new d and e, both from −2M to M like the old ones.
    fn apply_modulo(&self, d: &Limbs, e: &Limbs, modulo: &Modulo) -> (Limbs, Limbs) {
        let combined = |a, b| modulo.combine(a, d, b, e);
        (combined(self.u, self.v), combined(self.q, self.r))
    }
}

/// (a·x + b·y)/2⁶², which is an integer.
fn combine(a: i64, x: &Limbs, b: i64, y: &Limbs) -> Limbs {
    let sum = |i: usize| i128::from(a) * i128::from(x[i]) + i128::from(b) * i128::from(y[i]);
    let mut carry = sum(0) >> 62;
    let mut out = [0; 5];
    for i in 1..5 {
        carry += sum(i);
        out[i - 1] = carry as i64 & MASK_62;
        carry >>= 62;
    }
    out[4] = carry as i64;
    out
}

/// A modulus.
struct Modulo {
    limbs: Limbs,
    /// 1/M modulo 2⁶².
    inverse: u64,
}

impl Modulo {
    /// (a·x + b·y + m·M)/2⁶² for the m that makes it an integer from −2M to M. x and y are in that range too.
    fn combine(&self, a: i64, x: &Limbs, b: i64, y: &Limbs) -> Limbs {
        let sum = |i: usize| i128::from(a) * i128::from(x[i]) + i128::from(b) * i128::from(y[i]);
        // M is added to a negative x or y, so that adding m·M cannot leave the range.
        let lift = (a & (x[4] >> 63)).wrapping_add(b & (y[4] >> 63));
        let low = sum(0) as u64;
        let excess = self.inverse.wrapping_mul(low).wrapping_add(lift as u64) & MASK_62 as u64;
        let m = i128::from(lift - excess as i64);
        let mut carry = (sum(0) + m * i128::from(self.limbs[0])) >> 62;
        let mut out = [0; 5];
        for i in 1..5 {
            carry += sum(i) + m * i128::from(self.limbs[i]);
            out[i - 1] = carry as i64 & MASK_62;
            carry >>= 62;
        }
        out[4] = carry as i64;
        out
    }

    /// The number, plus M if it is negative.
    fn lift(&self, number: &Limbs) -> Limbs {
        if number[4] < 0 {
            carried(std::array::from_fn(|i| number[i] + self.limbs[i]))
        } else {
            *number
        }
    }
}

fn negate(number: &Limbs) -> Limbs {
    carried(number.map(|limb| -limb))
}

/// The same number with limbs 0 to 3 from 0 to 2⁶² − 1.
fn carried(mut limbs: Limbs) -> Limbs {
    for i in 0..4 {
        limbs[i + 1] += limbs[i] >> 62;
        limbs[i] &= MASK_62;
    }
    limbs
}

fn limbs_of([w0, w1, w2, w3]: &Words) -> Limbs {
    let limb = |word: u64| word as i64 & MASK_62;
    [
        limb(*w0),
        limb(w0 >> 62 | w1 << 2),
        limb(w1 >> 60 | w2 << 4),
        limb(w2 >> 58 | w3 << 6),
        limb(w3 >> 56),
    ]
}

fn words_of(limbs: &Limbs) -> Words {
    let [l0, l1, l2, l3, l4] = limbs.map(|limb| limb as u64);
    [l0 | l1 << 62, l1 >> 2 | l2 << 60, l2 >> 4 | l3 << 58, l3 >> 6 | l4 << 56]
}

/// The inverse of an odd word modulo 2⁶²: right in three bits, and in twice as many after every round.
fn inverse_of_word(odd: u64) -> u64 {
    (0..5)
        .fold(odd, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse))))
        & MASK_62 as u64
}

const MASK_62: i64 = (1 << 62) - 1;
