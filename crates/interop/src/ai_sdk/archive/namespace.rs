//! The data in `metadata.loomline` that a message can't hold otherwise. The parent module describes
//! the form.

mod digest;
mod packed;

use super::{OURS, text_of};
use digest::{digest, flatten};
pub(super) use packed::standard;
use packed::{Known, unpack};
use thread::{Json, Limits, Object};

/// The version that is written.
const VERSION: &str = "1.0.0";

/// The content of a namespace.
pub(super) struct Sealed {
    /// Which run of the archive the message shows.
    pub(super) run: u64,
    /// The number of the message among the `of` messages of that run.
    pub(super) position: u64,
    pub(super) of: u64,
    /// The data carried.
    pub(super) carried: Object,
}

/// Whether a message has our namespace.
pub(super) fn is_sealed(message: &Json) -> bool {
    let metadata = message.get("metadata");
    metadata.is_some_and(|metadata| metadata.get(OURS).is_some())
}

/// The message without the namespace, and without metadata if there is no other.
pub(super) fn without(message: &Json) -> Json {
    if !is_sealed(message) {
        return message.clone();
    }
    let mut message = message.clone();
    if let Some(message) = message.as_object_mut() {
        let metadata = message.get_mut("metadata").and_then(Json::as_object_mut);
        let empty = metadata.is_some_and(|metadata| {
            metadata.remove(OURS);
            metadata.is_empty()
        });
        if empty {
            message.remove("metadata");
        }
    }
    message
}

/// Adds the namespace to a message.
pub(super) fn seal(message: &mut Json, sealed: Sealed) {
    let text = {
        let known = Known::of(message);
        known.packed(Json::Object(sealed.carried)).to_text()
    };
    let digest = digest(message, [sealed.run, sealed.position, sealed.of], &text);
    let ours = Object::new()
        .with("version", VERSION)
        .with("run", sealed.run)
        .with("place", sealed.position)
        .with("of", sealed.of)
        .with("digest", digest)
        .with("text", text);
    let Some(message) = message.as_object_mut() else {
        return;
    };
    match message.get_mut("metadata").and_then(Json::as_object_mut) {
        Some(metadata) => {
            metadata.insert(OURS, ours);
        }
        None => {
            message.insert("metadata", Object::new().with(OURS, ours));
        }
    }
}

/// Reads the namespace of a message. The error is the reason for not trusting it.
pub(super) fn open(message: &Json, limits: &Limits) -> Result<Sealed, &'static str> {
    const BROKEN: &str = "it is not what this program writes";
    let ours = message.pointer("/metadata/loomline").ok_or(BROKEN)?;
    if !text_of(ours, "version").starts_with("1.") {
        return Err("it is of a version that this program does not know");
    }
    let number = |key: &str| ours.get(key).and_then(Json::as_u64).ok_or(BROKEN);
    let [run, place, of] = [number("run")?, number("place")?, number("of")?];
    let text = ours.get("text").and_then(Json::as_str).ok_or(BROKEN)?;
    if digest(&without(message), [run, place, of], text) != text_of(ours, "digest") {
        return Err("the message was changed since");
    }
    // What is carried stands up to two levels deeper than it did.
    let deeper = Limits {
        max_depth: limits.max_depth.saturating_add(2),
        ..*limits
    };
    let mut packed = Json::parse_with(text, &deeper).map_err(|_| BROKEN)?;
    let mut left = limits.max_bytes;
    unpack(&mut packed, message, &mut left).ok_or("what it refers to is not there")?;
    let carried = packed.into_object().ok_or(BROKEN)?;
    Ok(Sealed {
        run,
        position: place,
        of,
        carried,
    })
}

/// Whether two messages are the same to a browser, our namespace aside.
pub(super) fn is_same(one: &Json, other: &Json) -> bool {
    let flat = |message: &Json| {
        let mut told = String::new();
        flatten(&without(message), &mut told);
        told
    };
    one == other || flat(one) == flat(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Json {
        Json::object([
            ("id", "m".into()),
            ("role", "assistant".into()),
            (
                "parts",
                Json::Array(vec![
                    Json::object([("type", "text".into()), ("text", text.into())]),
                    Json::object([
                        ("type", "file".into()),
                        (
                            "url",
                            format!("data:image/png;base64,{}+/8=", "A".repeat(40)).into(),
                        ),
                        ("size", Json::parse("12345678901234567890").unwrap()),
                    ]),
                ]),
            ),
        ])
    }

    fn carried(text: &str) -> Object {
        let data = "A".repeat(40);
        let strings = [
            text.to_owned(),
            "@/parts".to_owned(),
            "@".to_owned(),
            format!("{data}+/8="),
            format!("{data}-_8="),
            format!("{data}-/8="),
        ];
        let strings: Json = strings.into_iter().collect();
        Object::new()
            .with("strings", strings)
            .with("big", Json::parse("1e400").unwrap())
    }

    fn sealed(text: &str) -> Json {
        let mut sealed = message(text);
        seal(
            &mut sealed,
            Sealed {
                run: 1,
                position: 0,
                of: 2,
                carried: carried(text),
            },
        );
        sealed
    }

    #[test]
    fn long_strings_are_written_once_and_everything_comes_back() {
        let text = "a text that is longer than thirty-two characters";
        let sealed = sealed(text);
        let whole = sealed.to_text();
        assert_eq!(whole.matches(text).count(), 1);
        assert_eq!(whole.matches(&"A".repeat(40)).count(), 2);
        let opened = open(&sealed, &Limits::default()).ok().unwrap();
        assert_eq!(opened.carried, carried(text));
        assert_eq!((opened.run, opened.position, opened.of), (1, 0, 2));
    }

    #[test]
    fn numbers_may_be_spelled_otherwise_and_nothing_else_may_change() {
        let text = sealed("short").to_text();
        let opened = |text: &str| open(&Json::parse(text).unwrap(), &Limits::default()).map(drop);
        let respelled = text.replace("12345678901234567890", "1.2345678901234567e19");
        assert_eq!(opened(&respelled), Ok(()));
        for (from, to) in [
            ("short", "sport"),
            ("12345678901234567890", "1"),
            (r#""run":1"#, r#""run":2"#),
            (r#"\"big\":1e400"#, r#"\"big\":1e500"#),
            (r#""id":"m""#, r#""id":"n""#),
        ] {
            let edited = text.replacen(from, to, 1);
            assert_ne!(edited, text);
            assert_eq!(
                opened(&edited),
                Err("the message was changed since"),
                "{to}"
            );
        }
    }

    #[test]
    fn a_small_namespace_can_not_stand_for_more_than_allowed() {
        let limits = Limits {
            max_bytes: 200,
            ..Limits::default()
        };
        let text = "x".repeat(150);
        let mut message = message(&text);
        let twice: Json = vec![text.as_str(), text.as_str()].into();
        let carried = Object::new().with("twice", twice);
        let sealed = Sealed {
            run: 0,
            position: 0,
            of: 1,
            carried,
        };
        seal(&mut message, sealed);
        assert!(open(&message, &Limits::default()).is_ok());
        assert_eq!(
            open(&message, &limits).err(),
            Some("what it refers to is not there")
        );
    }
}
