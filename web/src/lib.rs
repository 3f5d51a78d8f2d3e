//! phasor for JavaScript: what `web/README.md` describes, and `phasor.d.ts` once it is built.
//!
//! Every function checks what a page hands it and turns refusals into a JavaScript `Error`. Work on the device is
//! recorded when it is called for, in the order of the calls; its promise tells whether the device took it.

mod adopt;
mod attention;
mod config;
mod cope;
mod device;
mod error;
mod frequencies;
mod gpu;
mod math;
mod options;
mod reference;
mod rope;
mod step;
mod tensor;
mod types;

#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();
