//! The manual, from the definition of the command line: a page for each command. Knows nothing of where pages are kept.

use std::io;

use clap::builder::{Resettable, StyledStr};
use clap_mangen::Man;

use crate::cli;

/// One page.
pub(crate) struct Page {
    /// `drift`, `drift-diff`
    pub(crate) name: String,
    /// In roff, as `man` reads it.
    pub(crate) text: Vec<u8>,
}

impl Page {
    /// In section 1, programs.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.1", self.name)
    }
}

/// The program's page, then those of the commands that help shows.
pub(crate) fn pages() -> io::Result<Vec<Page>> {
    let mut program = cli::definition("drift").disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    add(&program, &mut pages)?;
    Ok(pages)
}

/// The page of a command, then those of the commands below it.
fn add(command: &clap::Command, pages: &mut Vec<Page>) -> io::Result<()> {
    pages.push(page(command)?);
    let below = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    below.into_iter().try_for_each(|verb| add(verb, pages))
}

fn page(command: &clap::Command) -> io::Result<Page> {
    // Of a command: `drift-diff`.
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let command = command.clone().after_help(Resettable::<StyledStr>::Reset);
    let man = Man::new(command).manual("helm drift").source(concat!("drift ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render(&mut text)?;
    text.extend_from_slice(sections(&after).as_bytes());
    Ok(Page { name, text })
}

/// What help says at its end, in the sections that manuals have for it. clap_mangen would fill its lines as prose.
fn sections(after: &str) -> String {
    after
        .split("\n\n")
        .filter_map(|paragraph| {
            let (title, body) = paragraph.split_once(':')?;
            let body = body.replace('\\', "\\e").replace('-', "\\-");
            Some(match title {
                "Examples" => format!(".SH EXAMPLES\n.nf{body}\n.fi\n"),
                _ => format!(".SH EXIT STATUS\n{}\n", body.trim_start()),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_with_its_flags_and_examples() {
        let pages = pages().unwrap_or_default();
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(names.first(), Some(&"drift"));
        for name in ["drift-check", "drift-diff", "drift-capture", "drift-config-check", "drift-install-kubectl"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("__") || name.contains("help")), "{names:?}");
        for page in &pages {
            let text = String::from_utf8_lossy(&page.text);
            assert!(text.contains(".SH SYNOPSIS"), "{}: {text}", page.name);
            assert!(page.name == "drift-config" || text.contains(".SH EXAMPLES\n.nf\n  "), "{}: {text}", page.name);
            assert!(text.contains(&format!(".TH {} 1", page.name)), "{}: {text}", page.name);
            let flag = if page.name == "drift-diff" { "\\-\\-show\\-all" } else { "\\-\\-help" };
            assert!(text.contains(flag), "{}: {text}", page.name);
        }
    }
}
