//! The same attention in every way that the library has: what each schedule and element type brings on a device.

use super::attention::{AttentionSizes, Tensors};
use super::{Measurement, Operation, Subject, measure};
use crate::Progress;
use phasor::attention::Schedule;
use phasor::{ElementType, Gpu, Result};

/// Fused attention by each schedule, without contextual encoding and with it; then by the schedule that the library
/// chooses, with tensors of half the bytes. For a decode step, which is always split over the keys, that is all.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those
/// of the device.
pub fn variants_operations(gpu: &Gpu, sizes: &AttentionSizes) -> Result<Vec<Operation>> {
    let tensors = Tensors::new(gpu, sizes)?;
    let [chosen, chosen_cope] = tensors.fused_by(["what is chosen, plain", "what is chosen, CoPE"], None)?;
    let mut all = vec![chosen.baseline(), chosen_cope];
    if !sizes.is_decode() {
        for (names, schedule) in [
            (["by tiles, plain", "by tiles, CoPE"], Schedule::Tiles),
            (["by rows, plain", "by rows, CoPE"], Schedule::Rows),
            (["split over keys, plain", "split over keys, CoPE"], Schedule::Split),
        ] {
            all.extend(tensors.fused_by(names, Some(schedule))?);
        }
    }
    for (names, element) in
        [(["f16, plain", "f16, CoPE"], ElementType::F16), (["bf16, plain", "bf16, CoPE"], ElementType::BF16)]
    {
        all.extend(Tensors::stored(gpu, sizes, element)?.fused_by(names, None)?);
    }
    Ok(all)
}

/// Times every operation in turn.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those
/// of the device.
pub async fn variants(gpu: &Gpu, sizes: AttentionSizes, progress: Progress<'_>) -> Result<Measurement> {
    measure(gpu, Subject::Variants(sizes), || variants_operations(gpu, &sizes), progress).await
}
