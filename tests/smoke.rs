//! smoke
use phasor::*;
#[test]
fn smoke() {
    let gpu = Gpu::request_blocking().unwrap();
    eprintln!("{:?}", gpu.info().name);
    let f = frequencies::Plain { base: 10_000.0 }.frequencies(64).unwrap();
    for pairing in [Pairing::HalfSplit, Pairing::Interleaved] { for table in [false, true] {
    let rope = Rope::new(&gpu, &f, pairing).unwrap();
    let lq = Layout::contiguous([2, 5, 6, 80]).unwrap();
    let vals: Vec<f32> = (0..lq.elements()).map(|i| ((i * 7919) % 101) as f32 / 50.0 - 1.0).collect();
    let q = gpu.upload(&vals, lq.shape()).unwrap();
    let o = gpu.zeros(ElementType::F32, lq.shape()).unwrap();
    let t = rope.table(0, 100).unwrap();
    let mut r = Rotate::into(&q, &o).positions(Positions::Start(7));
    if table { r = r.from_table(&t) }
    let p = rope.prepare(&r).unwrap();
    gpu.submit(|pass| { t.record(pass); p.record(pass) }).unwrap();
    let out = gpu.read_blocking(&o).unwrap();
    let mut want: Vec<f64> = vals.iter().map(|&x| x as f64).collect();
    reference::rope_rotate(&mut want, lq, &f, pairing, 0, Direction::Forward, |_, t| 7 + t as i32).unwrap();
    let e = out.iter().zip(&want).map(|(a, b)| (*a as f64 - b).abs()).fold(0.0, f64::max);
    eprintln!("{pairing:?} {table} {e:e} {}", p.dispatches()); let bad: Vec<_> = out.iter().zip(&want).enumerate().filter(|(_, (a, b))| (**a as f64 - **b).abs() > 1e-6).take(12).map(|(i, (a, b))| (i, *a, *b)).collect(); eprintln!("{bad:?}");
    assert!(e < 1e-6);
    }}
}
