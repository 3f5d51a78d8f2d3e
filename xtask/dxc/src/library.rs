//! DXC's library, as much of its interface as one compilation takes.
//!
//! The interface is COM's: an object begins with a pointer to a table of functions. Away from Windows DXC's own `IUnknown`
//! had, in the versions from which this library comes (1.7), a virtual destructor behind its three functions, which is two
//! more places in every table. Wide characters are those of C's `wchar_t`, 32 bits.

use std::ffi::c_void;
use std::path::Path;
use std::ptr;

/// The first place in a table that belongs to an interface itself: three functions and two destructors come before it.
const OWN: usize = 5;

const UTF_8: u32 = 65001;

#[repr(C)]
struct Guid(u32, u16, u16, [u8; 8]);

const CLSID_DXC_COMPILER: Guid = Guid(0x73e2_2d93, 0xe6ce, 0x47f3, [0xb5, 0xbf, 0xf0, 0x66, 0x4f, 0x39, 0xc1, 0xb0]);
const IID_IDXC_COMPILER3: Guid = Guid(0x228b_4687, 0x5a6a, 0x4730, [0x90, 0x0c, 0x97, 0x02, 0xb2, 0x20, 0x3f, 0x54]);
const IID_IDXC_RESULT: Guid = Guid(0x5834_6cda, 0xdde7, 0x4497, [0x94, 0x61, 0x6f, 0x87, 0xaf, 0x5e, 0x06, 0x59]);

/// `DxcBuffer`.
#[repr(C)]
struct Text {
    start: *const c_void,
    bytes: usize,
    encoding: u32,
}

/// An object of the library. It is never released: the program ends after one compilation.
struct Object(*mut c_void);

impl Object {
    /// The function at a place of the interface's own.
    ///
    /// # Safety
    /// `F` must be the type of that function.
    unsafe fn function<F: Copy>(&self, place: usize) -> F {
        // SAFETY: an object begins with a pointer to its table, which has that place by what the caller vouches for.
        unsafe {
            let table = *self.0.cast::<*const *const c_void>();
            ptr::read(table.add(OWN + place).cast::<F>())
        }
    }

    /// What an `IDxcBlob` holds.
    fn bytes(&self) -> Vec<u8> {
        type Pointer = unsafe extern "C" fn(*mut c_void) -> *const u8;
        type Size = unsafe extern "C" fn(*mut c_void) -> usize;
        // SAFETY: `GetBufferPointer` and `GetBufferSize` are the first functions of `IDxcBlob`.
        unsafe {
            let (start, size) = (self.function::<Pointer>(0)(self.0), self.function::<Size>(1)(self.0));
            if start.is_null() { Vec::new() } else { std::slice::from_raw_parts(start, size).to_vec() }
        }
    }
}

/// Compiles a text with the options of dxc's command line; an error is what the compiler said.
pub fn compile(library: &Path, text: &str, options: &[String]) -> Result<Vec<u8>, String> {
    type Create = unsafe extern "C" fn(*const Guid, *const Guid, *mut *mut c_void) -> i32;
    type Compile = unsafe extern "C" fn(
        *mut c_void,
        *const Text,
        *const *const u32,
        u32,
        *mut c_void,
        *const Guid,
        *mut *mut c_void,
    ) -> i32;
    type Status = unsafe extern "C" fn(*mut c_void, *mut i32) -> i32;
    type Output = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> i32;

    let wide: Vec<Vec<u32>> = options.iter().map(|option| option.chars().map(u32::from).chain([0]).collect()).collect();
    let pointers: Vec<*const u32> = wide.iter().map(|option| option.as_ptr()).collect();
    let text = Text { start: text.as_ptr().cast(), bytes: text.len(), encoding: UTF_8 };

    // SAFETY: the functions have the types that DXC's header (`dxcapi.h`) gives them; all that is pointed to outlives the
    // calls, and the library stays loaded, as its threads' storage may not be taken away.
    unsafe {
        let library = libloading::Library::new(library).map_err(|error| error.to_string())?;
        let library = std::mem::ManuallyDrop::new(library);
        let create = library.get::<Create>(b"DxcCreateInstance\0").map_err(|error| error.to_string())?;
        let compiler = made("a compiler", |out| create(&CLSID_DXC_COMPILER, &IID_IDXC_COMPILER3, out))?;
        let result = made("a result", |out| {
            compiler.function::<Compile>(0)(
                compiler.0,
                &text,
                pointers.as_ptr(),
                pointers.len() as u32,
                ptr::null_mut(),
                &IID_IDXC_RESULT,
                out,
            )
        })?;
        let mut status = 0;
        if result.function::<Status>(0)(result.0, &mut status) < 0 || status < 0 {
            let said = made("an error", |out| result.function::<Output>(2)(result.0, out))?;
            return Err(String::from_utf8_lossy(&said.bytes()).into_owned());
        }
        Ok(made("a binary", |out| result.function::<Output>(1)(result.0, out))?.bytes())
    }
}

/// What a call puts into its last argument, unless it fails.
fn made(what: &str, call: impl FnOnce(*mut *mut c_void) -> i32) -> Result<Object, String> {
    let mut object = ptr::null_mut();
    match call(&mut object) {
        code if code < 0 => Err(format!("DXC makes no {what}: {code:#x}")),
        _ if object.is_null() => Err(format!("DXC makes no {what}")),
        _ => Ok(Object(object)),
    }
}
