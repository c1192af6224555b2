//! Cases in Markdown: a heading, prose, and fenced blocks.

use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The first word after the fence.
    pub(crate) name: String,
    /// The other words after the fence.
    pub(crate) words: Vec<String>,
    pub(crate) text: String,
}

/// A heading with what stands under it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    file: String,
    title: String,
    pub(crate) blocks: Vec<Block>,
}

impl Block {
    pub(crate) fn new(info: &str, text: &str) -> Self {
        let mut words = info.split_whitespace().map(str::to_owned);
        Self {
            name: words.next().unwrap_or_default(),
            words: words.collect(),
            text: text.to_owned(),
        }
    }

    /// The words after the fence.
    pub(crate) fn info(&self) -> Vec<&str> {
        let words = self.words.iter().map(String::as_str);
        std::iter::once(self.name.as_str()).chain(words).collect()
    }

    pub(crate) fn unknown(&self) -> String {
        format!("the block {:?} is not understood", self.info().join(" "))
    }

    /// The lines, without white space around them.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text.lines().map(str::trim_end).collect()
    }

    /// The number in a word such as `rounds=2`, if there is a word; any other word is not understood.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u32>, String> {
        match self.words.as_slice() {
            [] => Ok(None),
            [word] => word
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('='))
                .and_then(|number| number.parse().ok())
                .map(Some)
                .ok_or_else(|| self.unknown()),
            _ => Err(self.unknown()),
        }
    }
}

impl Case {
    pub(crate) fn new(title: &str, blocks: Vec<Block>) -> Self {
        Self {
            file: String::new(),
            title: title.to_owned(),
            blocks,
        }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file, self.title)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

/// The names of the folders.
pub(crate) fn folders() -> Vec<String> {
    let entries = std::fs::read_dir(root()).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// The Markdown files of a folder, by name.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let mut open = vec![root().join(folder)];
    let mut files = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Reads a file; gives its cases, and what is no case.
pub(crate) fn read(path: &Path) -> (Vec<Case>, Vec<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let file = path.strip_prefix(root()).unwrap().display().to_string();
    let (mut cases, mut wrong): (Vec<Case>, Vec<String>) = Default::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            let mut case = Case::new(title.trim(), Vec::new());
            case.file.clone_from(&file);
            cases.push(case);
        } else if let Some(info) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let block = Block::new(info, &body.join("\n"));
            match cases.last_mut() {
                Some(case) => case.blocks.push(block),
                None => wrong.push(format!("{file}: a block before the first heading")),
            }
        }
    }
    if text.lines().filter(|line| line.starts_with("```")).count() % 2 == 1 {
        wrong.push(format!("{file}: a block without an end"));
    }
    (cases, wrong)
}

/// Compares what is there with what is asked for, line by line.
pub(crate) fn compare(expected: &[&str], found: &[String]) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!(
        "expected:\n  {}\nfound:\n  {}",
        expected.join("\n  "),
        found.join("\n  ")
    ))
}
