//! A server of files for a browser on this machine: as much of HTTP as that takes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::thread;

use crate::screen;

/// The port that is asked for; any other if it is taken.
const PORT: u16 = 8080;

/// Serves a folder until the process is ended, and says where; `page` is what to open.
pub fn folder(root: &Path, page: &str) -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", PORT)).or_else(|_| TcpListener::bind(("127.0.0.1", 0)));
    let listener = listener.map_err(|error| format!("no port can be listened to: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    println!("\n{}  (Ctrl+C ends it)", screen::bold(&format!("http://localhost:{}/{page}", address.port())));
    for stream in listener.incoming().flatten() {
        let root = root.to_owned();
        // A browser that goes away in the middle of an answer is no matter.
        thread::spawn(move || answer(&root, stream));
    }
    Ok(())
}

fn answer(root: &Path, mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // A connection that is closed before the request has been read to its end is reset.
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let body = file_of(root, target).and_then(|path| Some((fs::read(&path).ok()?, media_type(&path))));
    let (status, body, media_type) = match body {
        _ if !matches!(method, "GET" | "HEAD") => ("405 Method Not Allowed", Vec::new(), "text/plain"),
        Some((body, media_type)) => ("200 OK", body, media_type),
        None => ("404 Not Found", b"not found".to_vec(), "text/plain"),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )?;
    if method == "GET" { stream.write_all(&body) } else { Ok(()) }
}

/// The file that a request's target names, below the root and nowhere else.
fn file_of(root: &Path, target: &str) -> Option<PathBuf> {
    let path = target.split(['?', '#']).next()?.strip_prefix('/')?;
    let path = Path::new(path);
    // No part may lead out: `..`, a drive, another root.
    if path.components().any(|part| !matches!(part, Component::Normal(_))) || target.contains('\\') {
        return None;
    }
    let file = root.join(path);
    if file.is_dir() { Some(file.join("index.html")) } else { Some(file) }.filter(|file| file.is_file())
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "wgsl" | "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_below_the_root_are_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = |target| file_of(root, target);
        assert_eq!(file("/src/serve.rs?x=1"), Some(root.join("src/serve.rs")));
        for target in ["/../Cargo.toml", "/src/../../Cargo.toml", "//etc/passwd", "/src", "/no-such-file", "", "x"] {
            assert_eq!(file(target), None, "{target}");
        }
    }

    #[test]
    fn a_browser_is_told_what_a_module_is() {
        assert_eq!(media_type(Path::new("a.wasm")), "application/wasm");
        assert_eq!(media_type(Path::new("a.mjs")), "text/javascript; charset=utf-8");
        assert_eq!(media_type(Path::new("a")), "application/octet-stream");
    }
}
