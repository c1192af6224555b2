//! The allowed dependencies between crates, read from the manifests.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Each crate and the crates of ours it may depend on.
const ARROWS: [(&str, &[&str]); 11] = [
    ("thread", &[]),
    ("timeline", &[]),
    ("upp", &[]),
    ("agents", &["upp"]),
    ("interop", &["thread", "timeline", "upp"]),
    ("store", &["timeline"]),
    (
        "runtime",
        &["store", "timeline", "agents", "upp", "interop"],
    ),
    ("stores", &["store", "timeline"]),
    ("web", &["thread", "timeline", "interop"]),
    (
        "server",
        &[
            "thread", "timeline", "upp", "agents", "interop", "store", "runtime", "stores", "web",
        ],
    ),
    (
        "cli",
        &[
            "server", "interop", "thread", "timeline", "store", "runtime", "upp",
        ],
    ),
];

/// Crates that do no I/O, have no clock and no randomness.
pub(super) const PURE: [&str; 4] = ["thread", "timeline", "interop", "web"];

/// Dependencies that a pure crate must not have.
const IMPURE: [&str; 7] = [
    "tokio",
    "reqwest",
    "axum",
    "rand",
    "getrandom",
    "tempfile",
    "futures-util",
];

/// The only crate that names the database.
pub(super) const DATABASE: (&str, &str) = ("rusqlite", "stores");

/// A crate under `crates/` and what its manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    name: String,
    /// Crates of ours, by their folder, outside of tests.
    ours: Vec<String>,
    /// Crates of others, outside of tests.
    others: Vec<String>,
    /// Crates of others, for tests and build scripts.
    for_tests: Vec<String>,
}

/// The crates under `crates/`, as Cargo reads their manifests.
pub(super) fn packages(root: &Path) -> Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata can't be started")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    Ok(packages.into_iter().flatten().filter_map(package).collect())
}

fn package(package: &Value) -> Option<Package> {
    let manifest = Path::new(package.get("manifest_path")?.as_str()?);
    let name = folder_in_crates(manifest.parent()?)?;
    let mut found = Package {
        name,
        ours: Vec::new(),
        others: Vec::new(),
        for_tests: Vec::new(),
    };
    for dependency in package.get("dependencies")?.as_array()? {
        let ours = dependency
            .get("path")
            .and_then(Value::as_str)
            .and_then(|path| folder_in_crates(Path::new(path)));
        let normal = dependency.get("kind").is_none_or(Value::is_null);
        let name = dependency.get("name")?.as_str()?.to_owned();
        match (ours, normal) {
            (Some(ours), true) => found.ours.push(ours),
            (Some(_), false) => {}
            (None, true) => found.others.push(name),
            (None, false) => found.for_tests.push(name),
        }
    }
    Some(found)
}

fn folder_in_crates(folder: &Path) -> Option<String> {
    let inside = folder.parent()?.file_name()? == "crates";
    let name = folder.file_name()?.to_str()?;
    inside.then(|| name.to_owned())
}

pub(super) fn judge(packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for package in packages {
        let mut find =
            |what: String| findings.push(format!("crates/{}/Cargo.toml: {what}", package.name));
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            find("the architecture has no such crate; a new one needs a decision".into());
            continue;
        };
        for known in package
            .ours
            .iter()
            .filter(|known| !allowed.contains(&known.as_str()))
        {
            find(format!("{} must not know {known}", package.name));
        }
        let (database, owner) = DATABASE;
        let mut all = package.others.iter().chain(&package.for_tests);
        if package.name != owner && all.any(|name| name == database) {
            find(format!("only {owner} knows {database}"));
        }
        if PURE.contains(&package.name.as_str()) {
            for name in package
                .others
                .iter()
                .filter(|name| IMPURE.contains(&name.as_str()))
            {
                find(format!(
                    "{} is pure and has no use for {name}",
                    package.name
                ));
            }
        }
    }
    for (name, _) in ARROWS {
        if !packages.iter().any(|package| package.name == name) {
            findings.push(format!("crates/{name}: missing"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn allowed() -> Vec<Package> {
        ARROWS
            .iter()
            .map(|(name, allowed)| Package {
                name: (*name).to_owned(),
                ours: allowed.iter().map(|&name| name.to_owned()).collect(),
                others: vec!["serde".to_owned()],
                for_tests: Vec::new(),
            })
            .collect()
    }

    #[test]
    fn every_allowed_arrow_is_allowed() {
        assert_eq!(judge(&allowed()), Vec::<String>::new());
    }

    #[test]
    fn the_arrows_have_no_circle() {
        for (at, (name, knows)) in ARROWS.iter().enumerate() {
            for known in *knows {
                let place = ARROWS.iter().position(|(name, _)| name == known);
                assert!(place.is_some_and(|place| place < at), "{name} → {known}");
            }
        }
    }

    #[test]
    fn a_forbidden_arrow_is_named() {
        let mut packages = allowed();
        packages[0].ours.push("timeline".into());
        assert_eq!(
            judge(&packages),
            ["crates/thread/Cargo.toml: thread must not know timeline"]
        );
    }

    #[test]
    fn the_database_is_known_to_one_crate_even_in_tests() {
        let mut packages = allowed();
        packages[10].for_tests.push("rusqlite".into());
        assert_eq!(
            judge(&packages),
            ["crates/cli/Cargo.toml: only stores knows rusqlite"]
        );
    }

    #[test]
    fn a_pure_crate_has_no_runtime() {
        let mut packages = allowed();
        packages[4].others.push("tokio".into());
        packages[4].for_tests.push("tokio".into());
        assert_eq!(
            judge(&packages),
            ["crates/interop/Cargo.toml: interop is pure and has no use for tokio"]
        );
    }

    #[test]
    fn an_unknown_crate_and_a_missing_one_are_named() {
        let mut packages = allowed();
        packages[0].name = "common".into();
        let found = judge(&packages);
        assert!(
            found[0].starts_with("crates/common/Cargo.toml: the architecture has no such crate")
        );
        assert_eq!(found[1], "crates/thread: missing");
    }

    #[test]
    fn a_manifest_is_read_with_its_kinds() {
        let read = package(&json!({
            "manifest_path": "/x/crates/stores/Cargo.toml",
            "dependencies": [
                {"name": "loomline-runtime", "kind": null, "path": "/x/crates/runtime"},
                {"name": "rusqlite", "kind": null},
                {"name": "tempfile", "kind": "dev"},
            ],
        }));
        let expected = Package {
            name: "stores".into(),
            ours: vec!["runtime".into()],
            others: vec!["rusqlite".into()],
            for_tests: vec!["tempfile".into()],
        };
        assert_eq!(read, Some(expected));
        assert_eq!(
            package(&json!({"manifest_path": "/x/xtask/Cargo.toml", "dependencies": []})),
            None
        );
    }
}
