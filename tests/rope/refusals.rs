//! What is refused, and in which words: the argument, what it was, what it may be. After each, the device still works.

use crate::case::{Case, Memory};
use crate::common::{gpu, gpu_with};
use phasor::frequencies::{Axes, Frequencies, Plain};
use phasor::{CacheRows, ElementType, ErrorKind, Gpu, Layout, Pairing, Positions, Rope, Rotate, View};

/// The result is an error of this kind, and its message says these words.
macro_rules! assert_refused {
    ($result:expr, $kind:ident, $($word:expr),+ $(,)?) => {{
        let error = $result.map(|_| ()).expect_err("this must be refused");
        assert_eq!(error.kind(), ErrorKind::$kind, "{error:?}");
        let message = error.to_string();
        $(assert!(message.contains($word), "{message:?} does not say {:?}", $word);)+
    }};
}

#[track_caller]
fn assert_works(gpu: &Gpu) {
    assert_eq!(Case::default().run(gpu), Ok(1));
}

/// Turns all of eight channels.
fn rope() -> phasor::Result<Rope> {
    Rope::new(gpu(), &Plain::new(1e4).frequencies(8)?, Pairing::HalfSplit)
}

fn zeros(shape: [usize; 4]) -> phasor::Result<View> {
    gpu().zeros(ElementType::F32, shape)
}

/// A buffer of 4,096 bytes with these usages, as `[1, 4, 8, 8]` or what else fits.
fn buffer(gpu: &Gpu, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    let descriptor = wgpu::BufferDescriptor { label: None, size: 4096, usage, mapped_at_creation: false };
    gpu.device().create_buffer(&descriptor)
}

fn view(buffer: &wgpu::Buffer, element: ElementType, shape: [usize; 4]) -> phasor::Result<View> {
    View::new(buffer, element, Layout::contiguous(shape)?)
}

#[test]
fn layouts_that_do_not_fit() -> phasor::Result<()> {
    let layout = Layout::contiguous([2, 3, 4, 5])?;
    assert_refused!(Layout::contiguous([usize::MAX, 2, 1, 1]), Tensor, "shape", "2", "fits");
    assert_refused!(Layout::heads_first([2, usize::MAX, 2, 1]), Tensor, "shape", "fits");
    assert_refused!(Layout::strided([2, 1, 1, 1], [usize::MAX, 0, 0, 0], 1), Tensor, "layout", "strides", "fits");
    assert_refused!(layout.offset_by(usize::MAX), Tensor, "offset", "fits");
    assert_refused!(layout.batch(1..3), Tensor, "batch", "1..3", "0..2");
    assert_refused!(layout.tokens(4..4), Tensor, "tokens", "4..4", "0..3");
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = 3..2;
    assert_refused!(layout.heads(reversed), Tensor, "heads", "3..2", "0..4");
    Ok(())
}

#[test]
fn views_outside_of_their_buffer() -> phasor::Result<()> {
    let q = zeros([1, 2, 3, 8])?;
    let past = q.layout().offset_by(1)?;
    assert_refused!(View::new(q.buffer(), ElementType::F32, past), Tensor, "layout", "element 49", "48 f32 elements");
    let empty = Layout::strided([0, 1, 1, 1], [0; 4], 49)?;
    assert_refused!(View::new(q.buffer(), ElementType::I32, empty), Tensor, "layout", "49", "48 i32 elements");
    assert_refused!(q.heads(2..4), Tensor, "heads", "2..4", "0..3");
    assert_refused!(q.tokens(0..3), Tensor, "tokens", "0..3", "0..2");
    assert_refused!(q.batch(1..2), Tensor, "batch", "1..2", "0..1");
    Ok(())
}

#[test]
fn uploads_and_reads() -> phasor::Result<()> {
    assert_refused!(gpu().upload(&[0.0; 5], [1, 1, 2, 3]), Tensor, "shape", "6 elements", "5 elements");
    assert_refused!(gpu().upload_positions(&[0; 5], [2, 2]), Tensor, "shape", "4 elements", "5 elements");
    assert_refused!(zeros([1, 1 << 20, 1 << 20, 1 << 10]), Limit, "max_buffer_size", "4503599627370496 bytes", "up to");
    assert_refused!(zeros([1 << 62, 1, 1, 1]), Limit, "max_buffer_size", "up to");
    assert_refused!(zeros([usize::MAX, 2, 1, 1]), Tensor, "shape", "fits");
    let positions = gpu().upload_positions(&[1, 2], [1, 2])?;
    assert_refused!(gpu().read_blocking(&positions), Tensor, "view", "i32", "f32");
    let unreadable = view(&buffer(gpu(), wgpu::BufferUsages::STORAGE), ElementType::F32, [1, 1, 8, 8])?;
    assert_refused!(gpu().read_blocking(&unreadable), Usage, "view", "STORAGE", "COPY_SRC");
    assert_works(gpu());
    Ok(())
}

#[test]
fn frequencies_of_nothing() {
    assert_refused!(Frequencies::new(Vec::new(), 1.0), Setting, "inv_freq", "empty", "one number or more");
}

#[test]
fn tables() -> phasor::Result<()> {
    let rope = rope()?;
    assert_refused!(rope.table(i32::MAX, 2), Position, "tokens", "2 from position 2147483647", "2147483647");
    assert_refused!(rope.table(0, usize::MAX), Position, "tokens", "from position 0");
    assert_refused!(rope.table(i32::MIN, 1 << 32), Position, "tokens", "4294967296", "4294967295");
    assert_refused!(rope.table(0, i32::MAX as usize), Limit, "max_storage_buffer_binding_size", "the table");
    let floats = zeros([1, 4, 1, 1])?;
    assert_refused!(rope.table_for(&floats), Tensor, "positions", "f32", "i32");
    let heads = gpu().upload_positions(&[0; 8], [1, 8])?;
    let heads = View::new(heads.buffer(), ElementType::I32, Layout::contiguous([1, 4, 2, 1])?)?;
    assert_refused!(rope.table_for(&heads), Tensor, "positions", "[1, 4, 2, 1]", "[1, 4, 1, 1]");
    let transposed = View::new(heads.buffer(), ElementType::I32, Layout::strided([2, 4, 1, 1], [1, 2, 0, 0], 0)?)?;
    assert_refused!(rope.table_for(&transposed), Tensor, "positions", "[1, 2, 0, 0]", "rows follow each other");
    let unbindable = view(&buffer(gpu(), wgpu::BufferUsages::COPY_SRC), ElementType::I32, [1, 4, 1, 1])?;
    assert_refused!(rope.table_for(&unbindable), Usage, "positions", "COPY_SRC", "STORAGE");
    assert_works(gpu());
    Ok(())
}

#[test]
fn shapes_that_do_not_go_together() -> phasor::Result<()> {
    let rope = rope()?;
    let q = zeros([2, 3, 4, 8])?;
    let narrow = zeros([2, 3, 4, 6])?;
    assert_refused!(rope.prepare(&Rotate::in_place(&narrow)), Tensor, "q", "6 channels", "8 channels from 0");
    let last = rope.clone().from_channel(1);
    assert_refused!(last.prepare(&Rotate::in_place(&q)), Tensor, "q", "8 channels", "8 channels from 1");
    let nowhere = rope.clone().from_channel(usize::MAX);
    assert_refused!(nowhere.prepare(&Rotate::in_place(&q)), Tensor, "q", "8 channels", "18446744073709551615");
    for other in [[1, 3, 2, 8], [2, 4, 2, 8], [2, 3, 2, 16]] {
        let k = zeros(other)?;
        let both = Rotate::in_place(&q).and_in_place(&k);
        assert_refused!(rope.prepare(&both), Tensor, "k", &format!("{other:?}"), "[2, 3, any number of heads, 8]");
    }
    let (k, other) = (zeros([2, 3, 2, 8])?, zeros([2, 3, 5, 8])?);
    assert_refused!(rope.prepare(&Rotate::into(&q, &other)), Tensor, "q.output", "[2, 3, 5, 8]", "[2, 3, 4, 8]");
    let both = Rotate::in_place(&q).and_into(&k, &other);
    assert_refused!(rope.prepare(&both), Tensor, "k.output", "[2, 3, 5, 8]", "[2, 3, 2, 8]");
    let table = Rope::new(gpu(), &Plain::new(1e4).frequencies(4)?, Pairing::HalfSplit)?.table(0, 3)?;
    let rotate = Rotate::in_place(&q).from_table(&table);
    assert_refused!(rope.prepare(&rotate), Tensor, "table", "2 pairs", "4 pairs");
    assert_works(gpu());
    Ok(())
}

/// An argument's name, and the rotation that has a view in its place.
type Put<'a> = (&'static str, Box<dyn Fn(&View) -> Rotate + 'a>);

#[test]
fn element_types_and_usages() -> phasor::Result<()> {
    let rope = rope()?;
    let shape = [1, 2, 2, 8];
    let floats = || zeros(shape);
    let (q, k) = (floats()?, floats()?);
    let integers = gpu().zeros(ElementType::I32, shape)?;
    let without = buffer(gpu(), wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST);
    let without = view(&without, ElementType::F32, shape)?;
    let put: [Put<'_>; 5] = [
        ("q", Box::new(Rotate::in_place)),
        ("q", Box::new(|bad| Rotate::into(bad, &q))),
        ("q.output", Box::new(|bad| Rotate::into(&q, bad))),
        ("k", Box::new(|bad| Rotate::in_place(&q).and_in_place(bad))),
        ("k.output", Box::new(|bad| Rotate::in_place(&q).and_into(&k, bad))),
    ];
    for (argument, rotate) in &put {
        let starts = |error: phasor::Error| assert!(error.to_string().starts_with(&format!("{argument}: ")), "{error}");
        assert_refused!(rope.prepare(&rotate(&integers)), Tensor, "i32", "f32");
        starts(rope.prepare(&rotate(&integers)).unwrap_err());
        assert_refused!(rope.prepare(&rotate(&without)), Usage, "COPY_SRC | COPY_DST", "STORAGE");
        starts(rope.prepare(&rotate(&without)).unwrap_err());
    }
    assert_works(gpu());
    Ok(())
}

#[test]
fn views_that_meet() -> phasor::Result<()> {
    let rope = rope()?;
    let all = zeros([1, 4, 8, 8])?;
    let heads = |range| all.heads(range);
    let one = heads(0..4)?;
    let meets = "meets";
    let rotate = Rotate::in_place(&one).and_in_place(&one);
    assert_refused!(rope.prepare(&rotate), Overlap, "q: ", meets, " k,", "in place");
    let rotate = Rotate::in_place(&one).and_in_place(&heads(3..5)?);
    assert_refused!(rope.prepare(&rotate), Overlap, "q: ", meets, " k,");
    let rotate = Rotate::into(&one, &heads(1..5)?);
    assert_refused!(rope.prepare(&rotate), Overlap, "q: ", meets, " q.output,", "no element");
    let rotate = Rotate::in_place(&one).and_into(&heads(4..6)?, &heads(5..7)?);
    assert_refused!(rope.prepare(&rotate), Overlap, "k: ", meets, " k.output,");
    let rotate = Rotate::into(&heads(0..2)?, &heads(2..4)?).and_into(&heads(4..6)?, &heads(3..5)?);
    assert_refused!(rope.prepare(&rotate), Overlap, "q.output: ", meets, " k.output,");
    let rotate = Rotate::into(&heads(0..2)?, &heads(2..4)?).and_into(&heads(2..4)?, &heads(4..6)?);
    assert_refused!(rope.prepare(&rotate), Overlap, "q.output: ", meets, " k,");
    // The same two inputs are no conflict.
    let rotate = Rotate::into(&heads(0..2)?, &heads(2..4)?).and_into(&heads(0..2)?, &heads(4..6)?);
    assert_eq!(rope.prepare(&rotate)?.dispatches(), 1);
    let repeats = View::new(all.buffer(), ElementType::F32, Layout::strided([2, 2, 2, 8], [0, 16, 8, 1], 0)?)?;
    assert_refused!(rope.prepare(&Rotate::in_place(&repeats)), Tensor, "q: ", "strides", "each element once");
    let (input, k) = (zeros([2, 2, 2, 8])?, zeros([2, 2, 2, 8])?);
    assert_refused!(rope.prepare(&Rotate::into(&input, &repeats)), Tensor, "q.output: ", "each element once");
    let both = Rotate::in_place(&input).and_into(&k, &repeats);
    assert_refused!(rope.prepare(&both), Tensor, "k.output: ", "each element once");
    assert_works(gpu());
    Ok(())
}

/// A dispatch may not write what it reads its angles from.
#[test]
fn a_table_that_is_turned_by_itself() -> phasor::Result<()> {
    let rope = rope()?;
    let table = rope.table(0, 8)?;
    let itself = View::new(table.view().buffer(), ElementType::F32, Layout::contiguous([1, 8, 1, 8])?)?;
    let rotate = Rotate::in_place(&itself).from_table(&table);
    assert_refused!(rope.prepare(&rotate), Overlap, "table", "q", "another buffer");
    let q = zeros([1, 8, 1, 8])?;
    let rotate = Rotate::into(&q, &itself).from_table(&table);
    assert_refused!(rope.prepare(&rotate), Overlap, "table", "q.output", "another buffer");
    assert_works(gpu());
    Ok(())
}

#[test]
fn positions_of_the_wrong_kind() -> phasor::Result<()> {
    let rope = rope()?;
    let q = zeros([2, 3, 1, 8])?;
    let prepare = |positions| rope.prepare(&Rotate::in_place(&q).positions(positions));
    let floats = zeros([2, 3, 1, 1])?;
    assert_refused!(prepare(Positions::PerToken(floats)), Tensor, "positions", "f32", "i32");
    let without = view(&buffer(gpu(), wgpu::BufferUsages::COPY_DST), ElementType::I32, [2, 3, 1, 1])?;
    assert_refused!(prepare(Positions::PerToken(without)), Usage, "positions", "COPY_DST", "STORAGE");
    for shape in [[2, 2], [3, 3], [3, 1]] {
        let view = gpu().upload_positions(&[0; 9][..shape[0] * shape[1]], shape)?;
        let was = format!("{:?}", view.shape());
        let may_be = "[2, 3, 1, 1], where a 1";
        assert_refused!(prepare(Positions::PerToken(view)), Tensor, "positions", &was, may_be);
    }
    for shape in [[2, 3], [1, 3], [3, 1]] {
        let view = gpu().upload_positions(&[0; 9][..shape[0] * shape[1]], shape)?;
        let was = format!("{:?}", view.shape());
        let may_be = "[2, 1, 1, 1], where a 1";
        assert_refused!(prepare(Positions::StartPerRow(view)), Tensor, "positions", &was, may_be);
    }
    let written = View::new(q.buffer(), ElementType::I32, Layout::contiguous([2, 1, 1, 1])?)?;
    assert_refused!(prepare(Positions::StartPerRow(written)), Overlap, "positions", "q", "another buffer");
    assert_works(gpu());
    Ok(())
}

#[test]
fn several_axes() -> phasor::Result<()> {
    let axes = Axes::new(vec![0, 1, 2, 0], 3)?;
    assert_refused!(rope()?.with_axes(&Axes::one(5)), Setting, "axes", "5 pairs", "4 pairs");
    let rope = rope()?.with_axes(&axes)?;
    let q = zeros([2, 3, 1, 8])?;
    let prepare = |positions| rope.prepare(&Rotate::in_place(&q).positions(positions));
    assert_refused!(prepare(Positions::Start(0)), Position, "positions", "one number", "3 numbers");
    let one = gpu().upload_positions(&[0; 6], [2, 3])?;
    assert_refused!(prepare(Positions::PerToken(one)), Tensor, "positions", "[2, 3, 1, 1]", "[2, 3, 3, 1]");
    assert_refused!(rope.table(0, 3), Setting, "axes", "3", "table_for");
    assert_refused!(prepare(Positions::Same(4)), Position, "positions", "one number", "3 numbers");
    let view = |shape: [usize; 4]| {
        let numbers = gpu().upload_positions(&[0; 36], [1, 36])?;
        View::new(numbers.buffer(), ElementType::I32, Layout::contiguous(shape)?)
    };
    for shape in [[2, 3, 2, 1], [2, 3, 4, 1], [2, 3, 1, 3], [2, 2, 3, 1], [3, 3, 3, 1], [0, 3, 3, 1]] {
        let was = format!("{shape:?}");
        assert_refused!(prepare(Positions::PerToken(view(shape)?)), Tensor, "positions", &was, "[2, 3, 3, 1]");
    }
    assert_refused!(prepare(Positions::StartPerRow(view([2, 1, 1, 1])?)), Tensor, "positions", "[2, 1, 3, 1]");
    assert_refused!(prepare(Positions::StartPerRow(view([2, 3, 3, 1])?)), Tensor, "positions", "[2, 1, 3, 1]");
    assert_refused!(rope.table_for(&view([2, 3, 1, 1])?), Tensor, "positions", "[2, 3, 1, 1]", "[2, 3, 3, 1]");
    // One number of a range says nothing about three axes, whoever made the table.
    let range = self::rope()?.table(0, 9)?;
    let rotate = Rotate::in_place(&q).positions(Positions::PerToken(view([2, 3, 3, 1])?)).from_table(&range);
    assert_refused!(rope.prepare(&rotate), Tensor, "table", "9 positions", "table_for", "3 positions each");
    let written = View::new(q.buffer(), ElementType::I32, Layout::contiguous([2, 3, 3, 1])?)?;
    assert_refused!(prepare(Positions::PerToken(written)), Overlap, "positions", "q", "another buffer");
    assert_works(gpu());
    Ok(())
}

#[test]
fn caches() -> phasor::Result<()> {
    let rope = rope()?;
    let (q, k, cache) = (zeros([2, 3, 4, 8])?, zeros([2, 3, 2, 8])?, zeros([2, 9, 2, 8])?);
    let starts = gpu().upload_positions(&[0; 2], [2, 1])?;
    let rows = || CacheRows::StartPerRow(starts.clone());
    let into = |cache: &View, rows| Rotate::in_place(&q).and_into_cache(&k, cache, rows);
    for shape in [[1, 9, 2, 8], [2, 9, 3, 8], [2, 9, 2, 16]] {
        let was = format!("{shape:?}");
        let rotate = into(&zeros(shape)?, rows());
        assert_refused!(rope.prepare(&rotate), Tensor, "k.output", &was, "[2, any number of rows, 2, 8]");
    }
    for shape in [[3, 1], [2, 2]] {
        let other = gpu().upload_positions(&[0; 4][..shape[0] * shape[1]], shape)?;
        let was = format!("{:?}", other.shape());
        let rotate = into(&cache, CacheRows::StartPerRow(other));
        assert_refused!(rope.prepare(&rotate), Tensor, "rows", &was, "[2, 1, 1, 1]");
    }
    let floats = CacheRows::PerToken(zeros([2, 3, 1, 1])?);
    assert_refused!(rope.prepare(&into(&cache, floats)), Tensor, "rows", "f32", "i32");
    let written = CacheRows::StartPerRow(View::new(q.buffer(), ElementType::I32, starts.layout())?);
    assert_refused!(rope.prepare(&into(&cache, written)), Overlap, "rows", "q", "another buffer");
    let written = CacheRows::StartPerRow(View::new(cache.buffer(), ElementType::I32, starts.layout())?);
    assert_refused!(rope.prepare(&into(&cache, written)), Overlap, "rows", "k.output", "another buffer");
    let read = CacheRows::StartPerRow(View::new(k.buffer(), ElementType::I32, starts.layout())?);
    assert_eq!(rope.prepare(&into(&cache, read))?.dispatches(), 2, "what is only read may be shared");
    for shape in [[2, 4], [3, 3], [3, 1]] {
        let other = gpu().upload_positions(&[0; 9][..shape[0] * shape[1]], shape)?;
        let was = format!("{:?}", other.shape());
        let rotate = into(&cache, CacheRows::PerToken(other));
        assert_refused!(rope.prepare(&rotate), Tensor, "rows", &was, "[2, 3, 1, 1], where a 1");
    }
    let axes = View::new(starts.buffer(), ElementType::I32, Layout::contiguous([1, 1, 2, 1])?)?;
    let rotate = into(&cache, CacheRows::StartPerRow(axes));
    assert_refused!(rope.prepare(&rotate), Tensor, "rows", "[1, 1, 2, 1]", "[2, 1, 1, 1]");
    let unbindable = view(&buffer(gpu(), wgpu::BufferUsages::COPY_DST), ElementType::I32, [2, 1, 1, 1])?;
    let rotate = into(&cache, CacheRows::StartPerRow(unbindable));
    assert_refused!(rope.prepare(&rotate), Usage, "rows", "COPY_DST", "STORAGE");
    let repeated = View::new(cache.buffer(), ElementType::F32, Layout::strided([2, 9, 2, 8], [0, 16, 8, 1], 0)?)?;
    assert_refused!(rope.prepare(&into(&repeated, rows())), Tensor, "k.output", "each element once");
    // Keys alone are known by their own name.
    let alone = |k: &View, cache: &View| rope.prepare(&Rotate::into_cache(k, cache, rows()));
    assert_refused!(alone(&k, &zeros([2, 9, 3, 8])?), Tensor, "k.output: ", "[2, 9, 3, 8]", "for k");
    assert_refused!(alone(&zeros([2, 3, 2, 6])?, &cache), Tensor, "k: ", "6 channels", "8 channels from 0");
    assert_refused!(alone(&gpu().zeros(ElementType::I32, [2, 3, 2, 8])?, &cache), Tensor, "k: ", "i32", "bf16");
    let integers = gpu().zeros(ElementType::I32, [2, 9, 2, 8])?;
    assert_refused!(alone(&k, &integers), Tensor, "k.output: ", "i32", "bf16");
    let kept = View::new(cache.buffer(), ElementType::F32, Layout::contiguous([2, 3, 2, 8])?)?;
    assert_refused!(alone(&kept, &cache), Overlap, "k: ", "k.output");
    assert_refused!(alone(&kept, &cache.tokens(3..9)?), Overlap, "k: ", "k.output");
    let itself = Rotate::in_place(&q).and_into_cache(&k, &k, rows());
    assert_refused!(rope.prepare(&itself), Overlap, "k: ", "k.output");
    assert_eq!(rope.prepare(&into(&cache, rows()))?.dispatches(), 2, "in place and out of place");
    assert_works(gpu());
    Ok(())
}

#[test]
fn types_and_laws_that_do_not_go_together() -> phasor::Result<()> {
    let q = zeros([1, 2, 2, 8])?;
    let halves = View::new(q.buffer(), ElementType::F16, Layout::contiguous([1, 2, 2, 8])?)?;
    assert_refused!(rope()?.prepare(&Rotate::into(&q, &halves)), Tensor, "q.output", "f16", "f32");
    let k = zeros([1, 2, 2, 8])?;
    let halves = View::new(k.buffer(), ElementType::BF16, Layout::contiguous([1, 2, 2, 8])?)?;
    let both = Rotate::in_place(&q).and_into(&halves, &k);
    assert_refused!(rope()?.prepare(&both), Tensor, "k.output", "f32", "bf16, as k in the same buffer");
    // Numbers of different sizes are told apart by their bytes: eight of f32 end where the 16th half begins.
    let (all, eight) = (zeros([1, 1, 1, 32])?, Layout::contiguous([1, 1, 1, 8])?);
    let first = View::new(all.buffer(), ElementType::F32, eight)?;
    let halves = |at| View::new(all.buffer(), ElementType::F16, eight.offset_by(at)?);
    let beside = |halves: View| rope()?.prepare(&Rotate::in_place(&first).and_in_place(&halves));
    assert_refused!(beside(halves(15)?), Overlap, "q: ", " k,", "no element");
    assert_eq!(beside(halves(16)?)?.dispatches(), 2, "of one buffer, but of two types");
    assert_refused!(gpu().upload_as(ElementType::I32, &[0.0], [1; 4]), Tensor, "element", "i32", "f32, f16 or bf16");
    let (from, to) = (Plain::new(1e4).frequencies(8)?, Plain::new(1e4).frequencies(6)?);
    assert_refused!(Rope::between(gpu(), &from, &to, Pairing::HalfSplit), Setting, "to", "3 pairs", "4 pairs");
    assert_works(gpu());
    Ok(())
}

#[test]
fn positions_out_of_range() -> phasor::Result<()> {
    let rope = rope()?;
    let q = zeros([2, 3, 1, 8])?;
    let rotate = |positions| Rotate::in_place(&q).positions(positions);
    let last = rotate(Positions::Start(i32::MAX - 1));
    assert_refused!(rope.prepare(&last), Position, "positions", "2147483646 to 2147483648", "2147483647");
    let table = rope.table(10, 5)?;
    for (start, was) in [(9, "9 to 11"), (13, "13 to 15"), (-10, "-10 to -8"), (i32::MIN, "-2147483648")] {
        let rotate = rotate(Positions::Start(start)).from_table(&table);
        assert_refused!(rope.prepare(&rotate), Position, "positions", was, "within 10 to 14");
    }
    for start in [10, 12] {
        assert_eq!(rope.prepare(&rotate(Positions::Start(start)).from_table(&table))?.dispatches(), 1);
    }
    let given = gpu().upload_positions(&[1; 6], [2, 3])?;
    let rows = rope.table_for(&given)?;
    for positions in [Positions::Start(1), Positions::PerToken(given)] {
        let rotate = rotate(positions).from_table(&rows);
        assert_refused!(rope.prepare(&rotate), Position, "positions", "beside a table", "left out");
    }
    for shape in [[2, 2], [3, 3], [1, 4], [6, 1]] {
        let other = gpu().upload_positions(&[0; 9][..shape[0] * shape[1]], shape)?;
        let rotate = Rotate::in_place(&q).from_table(&rope.table_for(&other)?);
        let was = format!("table for {shape:?}");
        assert_refused!(rope.prepare(&rotate), Position, "positions", &was, "[2, 3] or [1, 3]");
    }
    assert_works(gpu());
    Ok(())
}

#[test]
fn a_destroyed_buffer() -> phasor::Result<()> {
    let rope = rope()?;
    let q = zeros([1, 2, 2, 8])?;
    let rotation = rope.prepare(&Rotate::in_place(&q))?;
    q.buffer().destroy();
    assert_refused!(gpu().submit(|pass| rotation.record(pass)), Device, "submission", "destroyed");
    assert_refused!(rope.prepare(&Rotate::in_place(&q)), Device, "q: ", "destroyed");
    assert_refused!(gpu().read_blocking(&q), Device, "reading back", "destroyed");
    assert_works(gpu());
    Ok(())
}

#[test]
fn another_device_s_buffers() -> phasor::Result<()> {
    let other = gpu_with(|_| ());
    let rope = rope()?;
    let (foreign, q) = (other.zeros(ElementType::F32, [1, 2, 2, 8])?, zeros([1, 2, 2, 8])?);
    assert_refused!(rope.prepare(&Rotate::in_place(&foreign)), Device, "q: ", "another device's");
    assert_refused!(rope.prepare(&Rotate::into(&q, &foreign)), Device, "q.output: ", "another device's");
    let positions = other.upload_positions(&[0; 2], [1, 2])?;
    let rotate = Rotate::in_place(&q).positions(Positions::PerToken(positions.clone()));
    assert_refused!(rope.prepare(&rotate), Device, "positions: ", "another device's");
    assert_refused!(rope.table_for(&positions), Device, "positions: ", "another device's");
    let table = Rope::new(&other, &Plain::new(1e4).frequencies(8)?, Pairing::HalfSplit)?.table(0, 2)?;
    assert_refused!(rope.prepare(&Rotate::in_place(&q).from_table(&table)), Device, "table: ", "another device's");
    assert_refused!(gpu().read_blocking(&foreign), Device, "reading back", "evice");
    let rotation = rope.prepare(&Rotate::in_place(&q))?;
    assert_refused!(other.submit(|pass| rotation.record(pass)), Device, "submission", "evice");
    assert_works(gpu());
    assert_works(&other);
    Ok(())
}

/// A driver that fails or an application that ends: nothing panics, everything says that the device is gone.
#[test]
fn a_lost_device() -> phasor::Result<()> {
    let gone = gpu_with(|_| ());
    let frequencies = Plain::new(1e4).frequencies(8)?;
    let rope = Rope::new(&gone, &frequencies, Pairing::HalfSplit)?;
    let q = gone.upload(&[1.0; 32], [1, 2, 2, 8])?;
    let positions = gone.upload_positions(&[0; 2], [1, 2])?;
    let rotation = rope.prepare(&Rotate::in_place(&q))?;
    let table = rope.table(0, 2)?;
    gone.device().destroy();
    assert_refused!(gone.upload(&[1.0; 32], [1, 2, 2, 8]), DeviceLost, "lost");
    assert_refused!(gone.zeros(ElementType::F32, [1, 2, 2, 8]), DeviceLost, "lost");
    assert_refused!(Rope::new(&gone, &frequencies, Pairing::HalfSplit), DeviceLost, "lost");
    assert_refused!(rope.table(0, 3), DeviceLost, "lost");
    assert_refused!(rope.table_for(&positions), DeviceLost, "lost");
    assert_refused!(rope.prepare(&Rotate::in_place(&q)), DeviceLost, "lost");
    assert_refused!(rope.prepare(&Rotate::in_place(&q).from_table(&table)), DeviceLost, "lost");
    assert_refused!(gone.submit(|pass| rotation.record(pass)), DeviceLost, "lost");
    assert_refused!(gone.read_blocking(&q), DeviceLost, "lost");
    assert_works(gpu());
    Ok(())
}

/// Refusals in the middle of work leave nothing behind: what was prepared before still runs.
#[test]
fn a_refusal_spoils_nothing() -> phasor::Result<()> {
    let rope = rope()?;
    let q = gpu().upload(&[1.0; 32], [1, 2, 2, 8])?;
    let rotation = rope.prepare(&Rotate::in_place(&q))?;
    assert!(rope.prepare(&Rotate::in_place(&q).and_in_place(&q)).is_err());
    gpu().submit(|pass| rotation.record(pass))?;
    // Token 0 does not turn, token 1 does.
    let got = gpu().read_blocking(&q)?;
    assert_eq!(got[..16], [1.0; 16]);
    assert_ne!(got[16..], [1.0; 16]);
    assert_eq!(Case { memory: Memory::Arena, ..Case::default() }.run(gpu()), Ok(1));
    Ok(())
}

/// Its rows would turn by angles that nobody asked for.
#[test]
fn tables_of_other_encodings() -> phasor::Result<()> {
    let rope = rope()?;
    let q = zeros([1, 2, 1, 8])?;
    let other = Rope::new(gpu(), &Plain::new(5e5).frequencies(8)?, Pairing::HalfSplit)?;
    let rotate = Rotate::in_place(&q).from_table(&other.table(0, 2)?);
    assert_refused!(rope.prepare(&rotate), Tensor, "table", "other frequencies", "this encoding made");
    // The pairing says how channels are read, not how far they turn.
    let same = Rope::new(gpu(), rope.frequencies(), Pairing::Interleaved)?;
    assert_eq!(rope.prepare(&Rotate::in_place(&q).from_table(&same.table(0, 2)?))?.dispatches(), 1);
    let positions = gpu().upload_positions(&[0, 1], [1, 2])?;
    let rotate = Rotate::in_place(&q).positions(Positions::PerToken(positions)).from_table(&rope.table(0, 0)?);
    assert_refused!(rope.prepare(&rotate), Tensor, "table", "without rows");
    Ok(())
}

/// Several tokens in one row would be a race.
#[test]
fn a_row_of_a_cache_that_serves_several_tokens() -> phasor::Result<()> {
    let (k, cache) = (zeros([1, 3, 1, 8])?, zeros([1, 5, 1, 8])?);
    let rows = CacheRows::PerToken(gpu().upload_positions(&[2], [1, 1])?);
    assert_refused!(
        rope()?.prepare(&Rotate::into_cache(&k, &cache, rows)),
        Tensor,
        "rows",
        "[1, 1, 1, 1]",
        "[1, 3, 1, 1]"
    );
    Ok(())
}
