//! `schema`: the JSON Schemas of documents and archives.

use crate::error::CliError;
use crate::output::Output;
use crate::sink::Sink;
use clap::{Args, ValueEnum};
use interop::archive;
use serde_json::json;
use std::path::{Path, PathBuf};
use thread::schema::file_name;
use thread::{Json, Profile, Version};

/// `loomline schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// A version of `ThreadProtocol`, or the archive.
    #[arg(value_enum, value_name = "NAME", default_value = "0.0.4")]
    name: Name,
    /// Print the schema for writers, which is stricter than the one for readers. An archive has only one.
    #[arg(long)]
    strict: bool,
    /// Write each schema to a file of its own.
    #[arg(long, requires = "output", conflicts_with_all = ["name", "strict"])]
    all: bool,
    /// The directory for all schemas. It is created if it does not exist.
    #[arg(long, short, value_name = "DIR", requires = "all", conflicts_with_all = ["name", "strict"])]
    output: Option<PathBuf>,
}

/// The documents that have a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    #[value(name = "0.0.4")]
    V0_0_4,
    #[value(name = "0.0.3")]
    V0_0_3,
    #[value(name = "2.0.0")]
    V2_0_0,
    #[value(name = "1.0.0")]
    V1_0_0,
    Archive,
}

impl Name {
    fn version(self) -> Option<Version> {
        match self {
            Self::V0_0_4 => Some(Version::V0_0_4),
            Self::V0_0_3 => Some(Version::V0_0_3),
            Self::V2_0_0 => Some(Version::V2_0_0),
            Self::V1_0_0 => Some(Version::V1_0_0),
            Self::Archive => None,
        }
    }
}

pub(crate) fn schema(options: &Schema, output: &Output) -> Result<(), CliError> {
    let profile = if options.strict {
        Profile::Strict
    } else {
        Profile::Lenient
    };
    match &options.output {
        Some(directory) => write_all(directory, output),
        None => output.document(&text(options.name.version().as_ref(), profile)),
    }
}

/// The schema of a version, or without one of the archive, on many lines.
fn text(version: Option<&Version>, profile: Profile) -> String {
    let schema = match version {
        Some(version) => thread::schema(version, profile).unwrap_or_default(),
        None => archive::schema(),
    };
    pretty(&schema)
}

/// JSON for people; a schema has no number that a double can't carry.
fn pretty(schema: &Json) -> String {
    format!("{:#}", schema.to_value().unwrap_or_default())
}

fn write_all(directory: &Path, output: &Output) -> Result<(), CliError> {
    let made = std::fs::create_dir_all(directory);
    made.map_err(CliError::io(format!("make {}", directory.display())))?;
    let versions = Name::value_variants()
        .iter()
        .filter_map(|name| name.version());
    let mut files = vec![(
        archive::schema::FILE_NAME.to_owned(),
        text(None, Profile::Lenient),
    )];
    for version in versions {
        for profile in [Profile::Lenient, Profile::Strict] {
            files.push((file_name(&version, profile), text(Some(&version), profile)));
        }
    }
    for (name, text) in files {
        let file = directory.join(name);
        let name = file.display().to_string();
        let mut sink = Sink::open(Some(&file), output)?;
        sink.document(&format!("{text}\n"))?;
        sink.finish()?;
        output.value(&json!({"file": name}))?;
        output.line(&name)?;
    }
    Ok(())
}
