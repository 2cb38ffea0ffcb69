//! The page that verifies where it is opened, in programs that were built with it.

/// The page: one HTML file. The variable `WIREPROOF_PAGE` names it when the program is built.
#[cfg(has_page)]
pub const PAGE: Option<&[u8]> = Some(include_bytes!(env!("WIREPROOF_PAGE_FILE")));
/// The page, which this program was built without.
#[cfg(not(has_page))]
pub const PAGE: Option<&[u8]> = None;

/// How to get the page, in one line, where the program was built without it.
pub const WITHOUT_PAGE: &str = "this program was built without the page: take a released one, or run `cargo xtask page` in a checkout, which \
                                writes target/page/wireproof.html";
