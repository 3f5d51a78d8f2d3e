//! phasor for JavaScript: what `web/README.md` describes, and `phasor.d.ts` once it is built.
//!
//! Every function checks what a page hands it and turns refusals into a JavaScript `Error`. Work on the device is
//! recorded when it is called for, in the order of the calls; its promise tells whether the device took it.
//!
//! Two modules for the browser are made of this, by feature: `device`, and `reference`, which few pages need.
#![cfg_attr(not(feature = "device"), allow(dead_code, reason = "what reads options of both"))]

#[cfg(feature = "device")]
mod adopt;
#[cfg(feature = "device")]
mod attention;
#[cfg(feature = "device")]
mod config;
#[cfg(feature = "device")]
mod cope;
#[cfg(feature = "device")]
mod device;
mod error;
#[cfg(feature = "device")]
mod frequencies;
#[cfg(feature = "device")]
mod gpu;
#[cfg(feature = "device")]
mod handles;
mod math;
mod options;
#[cfg(feature = "reference")]
mod reference;
#[cfg(feature = "device")]
mod rope;
#[cfg(feature = "device")]
mod step;
#[cfg(feature = "device")]
mod tensor;
#[cfg(feature = "device")]
mod types;

#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();
