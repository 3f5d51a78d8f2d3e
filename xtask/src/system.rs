//! Which system this is, and how its users install packages.

/// The systems whose packages we can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Debian,
    /// Debian's packages, except that Chromium is a snap.
    Ubuntu,
    Fedora,
    Arch,
    MacOs,
    Windows,
    Other,
}

impl System {
    /// The system that we run on.
    pub fn here() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            "linux" => Self::from_os_release(&std::fs::read_to_string("/etc/os-release").unwrap_or_default()),
            _ => Self::Other,
        }
    }

    /// From the text of `/etc/os-release`: by its `ID`, or else by the systems that it says it is like.
    fn from_os_release(text: &str) -> Self {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
        };
        let names = format!("{} {}", value("ID"), value("ID_LIKE"));
        let known = names.split_whitespace().find_map(|name| match name {
            "debian" => Some(Self::Debian),
            "ubuntu" => Some(Self::Ubuntu),
            "fedora" | "rhel" => Some(Self::Fedora),
            "arch" => Some(Self::Arch),
            _ => None,
        });
        known.unwrap_or(Self::Other)
    }

    /// What a user types to install packages, where set-up does not do it itself.
    pub fn advice(self, packages: &[&str]) -> String {
        let packages = packages.join(" ");
        match self {
            Self::Debian | Self::Ubuntu => format!("apt-get install --no-install-recommends {packages}"),
            Self::Fedora => format!("sudo dnf install {packages}"),
            Self::Arch => format!("sudo pacman -S --needed {packages}"),
            Self::MacOs => format!("brew install {packages}"),
            Self::Windows => format!("winget install {packages}"),
            Self::Other => format!("what Debian packs as: {packages}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_known_by_name_or_by_likeness() {
        let of = System::from_os_release;
        assert_eq!(of("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n"), System::Debian);
        assert_eq!(of("ID=ubuntu\nID_LIKE=debian\n"), System::Ubuntu);
        assert_eq!(of("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"), System::Ubuntu);
        assert_eq!(of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), System::Fedora);
        assert_eq!(of("ID=manjaro\nID_LIKE=arch\n"), System::Arch);
        assert_eq!(of("ID=nixos\n"), System::Other);
        assert_eq!(of(""), System::Other);
    }
}
