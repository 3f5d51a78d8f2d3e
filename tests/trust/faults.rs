//! What goes wrong around an operation is an error that names the argument: the device goes on where wgpu allows, nothing
//! is written, and no error of wgpu's reaches the application past phasor.

use crate::common::{gpu, gpu_with};
use crate::operations::{self, Argument};
use phasor::{ElementType, Error, ErrorKind, Gpu, Layout, Result, View};
use std::sync::{Arc, Mutex, OnceLock};

/// A device whose uncaptured errors are kept.
struct Watched {
    gpu: Gpu,
    uncaptured: Arc<Mutex<Vec<String>>>,
}

impl Watched {
    /// One for all tests, whose pipelines take a while.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Watched> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(gpu_with(|_| {})))
    }

    fn new(gpu: Gpu) -> Self {
        let uncaptured = Arc::new(Mutex::new(Vec::new()));
        let seen = uncaptured.clone();
        gpu.device().on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            seen.lock().unwrap().push(error.to_string());
        }));
        Self { gpu, uncaptured }
    }

    #[track_caller]
    fn assert_calm(&self) {
        let seen = self.uncaptured.lock().unwrap();
        assert!(seen.is_empty(), "reached the application: {seen:?}");
    }
}

/// A tensor in a buffer that was made with this usage only.
fn with_usage(gpu: &Gpu, argument: &Argument, usage: wgpu::BufferUsages) -> View {
    let size = (4 * argument.layout().span().end as u64).next_multiple_of(4);
    let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    View::new(&gpu.device().create_buffer(&descriptor), argument.numbers.element(), argument.layout()).unwrap()
}

/// What may be wrong with one argument, and what that is called.
fn faulty(gpu: &Gpu, other: &Gpu, argument: &Argument) -> [(View, ErrorKind); 4] {
    let storage = wgpu::BufferUsages::STORAGE;
    let good = with_usage(gpu, argument, storage);
    let element = match good.element() {
        ElementType::I32 => ElementType::F32,
        _ => ElementType::I32,
    };
    let destroyed = with_usage(gpu, argument, storage);
    destroyed.buffer().destroy();
    [
        (with_usage(gpu, argument, wgpu::BufferUsages::COPY_SRC), ErrorKind::Usage),
        (View::new(good.buffer(), element, good.layout()).unwrap(), ErrorKind::Tensor),
        (with_usage(other, argument, storage), ErrorKind::Device),
        (destroyed, ErrorKind::Device),
    ]
}

#[test]
fn the_argument_at_fault_is_named() -> Result<()> {
    let (watched, other) = (Watched::shared(), Watched::new(gpu_with(|_| {})));
    for operation in operations::all(&watched.gpu) {
        let expected = operation.run(&watched.gpu)?;
        for (i, argument) in operation.arguments.iter().enumerate() {
            for (view, kind) in faulty(&watched.gpu, &other.gpu, argument) {
                let mut views = operation.upload(&watched.gpu)?;
                views[i] = view;
                let what = format!("{}, {}, {kind:?}", operation.name, argument.name);
                let Err(error) = operation.prepare(&watched.gpu, &views).map(|_| ()) else {
                    panic!("{what}: accepted")
                };
                assert_eq!(error.kind(), kind, "{what}: {error}");
                assert!(error.to_string().starts_with(&format!("{}: ", argument.name)), "{what}: {error}");
            }
        }
        assert_eq!(operation.run(&watched.gpu)?, expected, "{} afterwards", operation.name);
    }
    watched.assert_calm();
    other.assert_calm();
    Ok(())
}

/// Each tensor that is written on top of each other one, a word further on.
#[test]
fn written_tensors_meet_no_other() -> Result<()> {
    let watched = Watched::shared();
    for operation in operations::all(&watched.gpu) {
        for (w, writer) in operation.arguments.iter().enumerate().filter(|(_, argument)| argument.written) {
            // What an earlier dispatch reads for the last time: a table is made of positions, and queries of inputs.
            let earlier = [("rotation from a table", "positions"), ("module", "inputs")];
            let others =
                |&(i, other): &(usize, &Argument)| i != w && !earlier.contains(&(operation.name.as_str(), other.name));
            for (i, argument) in operation.arguments.iter().enumerate().filter(others) {
                let mut views = operation.upload(&watched.gpu)?;
                let shared = watched.gpu.zeros(ElementType::F32, [1, 1, 1, 4096])?;
                let moved = argument.layout().offset_by(4)?;
                views[w] = View::new(shared.buffer(), writer.numbers.element(), writer.layout())?;
                views[i] = View::new(shared.buffer(), argument.numbers.element(), moved)?;
                let what = format!("{}, {} on {}", operation.name, writer.name, argument.name);
                let Err(error) = operation.prepare(&watched.gpu, &views).map(|_| ()) else {
                    panic!("{what}: accepted")
                };
                assert_eq!(error.kind(), ErrorKind::Overlap, "{what}: {error}");
                let message = error.to_string();
                assert!(message.contains(writer.name) && message.contains(argument.name), "{what}: {message}");
            }
        }
    }
    watched.assert_calm();
    Ok(())
}

/// A recording over a buffer that went away is an error of its submission, and of that alone.
#[test]
fn a_buffer_that_goes_away_after_preparing() -> Result<()> {
    let watched = Watched::shared();
    for operation in operations::all(&watched.gpu) {
        let expected = operation.run(&watched.gpu)?;
        for i in 0..operation.arguments.len() {
            let views = operation.upload(&watched.gpu)?;
            let recording = operation.prepare(&watched.gpu, &views)?;
            views[i].buffer().destroy();
            let what = format!("{}, {}", operation.name, operation.arguments[i].name);
            let Err(error) = watched.gpu.submit(|pass| recording.record(pass)) else { panic!("{what}: submitted") };
            assert_eq!(error.kind(), ErrorKind::Device, "{what}: {error}");
            assert!(error.was().contains("destroyed"), "{what}: {error}");
            let read = watched.gpu.read_blocking(&floats(&views[i])?);
            assert!(read.is_err_and(|error| error.kind() == ErrorKind::Device), "{what}");
        }
        assert_eq!(operation.run(&watched.gpu)?, expected, "{} afterwards", operation.name);
    }
    watched.assert_calm();
    Ok(())
}

fn floats(view: &View) -> Result<View> {
    View::new(view.buffer(), ElementType::F32, view.layout())
}

/// Recordings go on while another thread ends the device: each is an answer or says that the device is gone.
#[test]
fn a_device_lost_in_the_middle() -> Result<()> {
    let watched = Watched::new(gpu_with(|_| {}));
    let gpu = &watched.gpu;
    let some = ["rotation from a table", "contextual bias", "merge", "projection by Dots", "fused attention by Split"];
    let prepared: Vec<_> = operations::all(gpu)
        .into_iter()
        .filter(|operation| some.contains(&operation.name.as_str()))
        .map(|operation| {
            let views = operation.upload(gpu)?;
            let recording = operation.prepare(gpu, &views)?;
            Ok((operation, views, recording))
        })
        .collect::<Result<_>>()?;
    let (started, start) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            start.recv().unwrap();
            gpu.device().destroy();
        });
        let mut rounds = 0;
        let lost = loop {
            let round = prepared.iter().try_for_each(|(operation, views, recording)| {
                gpu.submit(|pass| recording.record(pass))?;
                operation.prepare(gpu, views)?;
                gpu.read_blocking(&floats(&views[0])?).map(|_| ())
            });
            if let Err(error) = round {
                break error;
            }
            rounds += 1;
            if rounds == 2 {
                started.send(()).unwrap();
            }
            assert!(rounds < 10_000, "the device was ended long ago");
        };
        assert_eq!(lost.kind(), ErrorKind::DeviceLost, "{lost}");
    });
    for (operation, views, recording) in &prepared {
        for result in [
            operation.upload(gpu).map(|_| ()),
            operation.prepare(gpu, views).map(|_| ()),
            gpu.submit(|pass| recording.record(pass)),
            gpu.read_blocking(&floats(&views[0])?).map(|_| ()),
        ] {
            let Err(error) = result else { panic!("{}: on a device that is gone", operation.name) };
            assert_eq!(error.kind(), ErrorKind::DeviceLost, "{}: {error}", operation.name);
        }
    }
    watched.assert_calm();
    // Another device, and the adapter, are none the worse.
    let next = Watched::shared();
    operations::all(&next.gpu)[0].run(&next.gpu).map(|_| ())
}

/// A view ends with its buffer, whatever its elements and strides.
#[test]
fn views_end_with_their_buffers() -> Result<()> {
    for (bytes, element, holds) in [
        (64, ElementType::F32, 16),
        (64, ElementType::BF16, 32),
        // What is behind the last whole word cannot be bound.
        (66, ElementType::F16, 32),
        (66, ElementType::I32, 16),
        (2, ElementType::F16, 0),
    ] {
        let usage = wgpu::BufferUsages::STORAGE;
        let descriptor = wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
        let buffer = gpu().device().create_buffer(&descriptor);
        let view =
            |elements, offset| View::new(&buffer, element, Layout::strided([1, 1, 1, elements], [1; 4], offset)?);
        assert!(view(holds, 0).is_ok() && view(0, holds).is_ok(), "{bytes} bytes of {element}");
        assert!(view(holds + 1, 0).is_err() && view(1, holds).is_err(), "{bytes} bytes of {element}");
        let far = Layout::strided([2, 1, 1, 1], [usize::MAX / 2, 0, 0, 0], 0)?;
        assert!(matches!(View::new(&buffer, element, far), Err(error) if error.kind() == ErrorKind::Tensor));
    }
    Ok(())
}

/// A device without room says so, for whatever needs some, and goes on once there is some again. In a process of its own,
/// which the system gives little memory.
#[cfg(unix)]
#[test]
fn memory_that_runs_out() -> Result<()> {
    const CHILD: &str = "PHASOR_LITTLE_MEMORY";
    if std::env::var_os(CHILD).is_some() {
        return fill_memory();
    }
    // A GPU's memory is not the process's, and its driver reserves more addresses than would be left.
    if !gpu().is_software() {
        return Ok(());
    }
    let this = std::env::current_exe().expect("a test is a program");
    let limited = "ulimit -v 2097152 && exec \"$0\" --exact faults::memory_that_runs_out --nocapture";
    let mut command = std::process::Command::new("sh");
    let ended = command.arg("-c").arg(limited).arg(this).env(CHILD, "1").output().expect("a unix has a shell");
    assert!(ended.status.success(), "{ended:?}");
    Ok(())
}

#[cfg(unix)]
fn fill_memory() -> Result<()> {
    let watched = Watched::new(gpu_with(|_| {}));
    let gpu = &watched.gpu;
    let operation = &operations::all(gpu)[0];
    let expected = operation.run(gpu)?;
    let mut filled = Vec::new();
    let (elements, bytes) = (32 << 20, 128 << 20);
    let error = loop {
        match gpu.zeros(ElementType::F32, [1, 1, 1, elements]) {
            Ok(view) => filled.push(view),
            Err(error) => break error,
        }
        assert!(filled.len() <= 16, "2 GiB hold no more than that");
    };
    assert_eq!(error, Error::new(ErrorKind::OutOfMemory, "a tensor's buffer", format!("{bytes} bytes"), ""));
    // What is there already still works, and what needs little may find room for it.
    assert_eq!(operation.run(gpu)?, expected, "without room");
    drop(filled);
    gpu.wait()?;
    gpu.zeros(ElementType::F32, [1, 1, 1, elements])?;
    assert_eq!(operation.run(gpu)?, expected, "with room again");
    watched.assert_calm();
    Ok(())
}
