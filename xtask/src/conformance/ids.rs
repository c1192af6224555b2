//! The ids that `docs/conformance.md` has a row for, each once.

/// Ids that differ in their number: the text before it, and the number of the last.
type Series = (&'static str, u32);

/// Ids that are counted together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Their name in the summary.
    pub(super) name: &'static str,
    /// Whether a row says what its rule is.
    pub(super) has_rules: bool,
    series: &'static [Series],
}

const fn requirements(name: &'static str, series: &'static [Series]) -> Group {
    Group {
        name,
        has_rules: false,
        series,
    }
}

const fn rules(name: &'static str, series: &'static [Series]) -> Group {
    Group {
        name,
        has_rules: true,
        series,
    }
}

/// All that must have a row.
pub(super) const GROUPS: [Group; 9] = [
    requirements("TP", &[("TP-", 18)]),
    requirements("EK", &[("EK-", 17)]),
    requirements("UAP", &[("UAP-", 14)]),
    requirements("AITP", &[("AITP-", 8)]),
    requirements("X", &[("X-", 9)]),
    rules("UAP rules", &UAP),
    rules("UPP rules", &UPP),
    rules("gaps", &[("gap ", 21)]),
    rules("untested", &[("untested ", 22)]),
];

/// The rules of UAP-1.0, section by section.
const UAP: [Series; 76] = [
    ("UAP §1.3 MUST ", 1),
    ("UAP §1.3 MUST NOT ", 1),
    ("UAP §1.7 MUST ", 1),
    ("UAP §2.1 MUST NOT ", 1),
    ("UAP §2.2 text ", 1),
    ("UAP §2.3 text ", 1),
    ("UAP §2.4 SHALL NOT ", 1),
    ("UAP §2.4 MUST ", 1),
    ("UAP §2.6 MUST NOT ", 1),
    ("UAP §3.2 MUST ", 1),
    ("UAP §3.4 MUST ", 4),
    ("UAP §4.2 REQUIRED ", 1),
    ("UAP §4.2 text ", 1),
    ("UAP §4.3 text ", 1),
    ("UAP §4.4 text ", 1),
    ("UAP §4.5 text ", 1),
    ("UAP §4.6 MUST NOT ", 1),
    ("UAP §4.6 text ", 1),
    ("UAP §4.7 text ", 1),
    ("UAP §5.1 text ", 1),
    ("UAP §5.2 text ", 2),
    ("UAP §5.3 MUST ", 4),
    ("UAP §5.3 text ", 1),
    ("UAP §5.4 MUST ", 4),
    ("UAP §5.4 text ", 2),
    ("UAP §5.5 MUST ", 1),
    ("UAP §6.1 text ", 1),
    ("UAP §6.2 text ", 2),
    ("UAP §6.5 MUST ", 5),
    ("UAP §7.1 text ", 1),
    ("UAP §7.2 text ", 1),
    ("UAP §7.3 text ", 1),
    ("UAP §8.1 MUST NOT ", 1),
    ("UAP §8.2 MUST ", 1),
    ("UAP §8.4 MUST ", 4),
    ("UAP §8.4 text ", 1),
    ("UAP §8.5 text ", 2),
    ("UAP §8.6 text ", 2),
    ("UAP §8.7 MUST ", 5),
    ("UAP §8.7 SHOULD ", 2),
    ("UAP §8.7 text ", 3),
    ("UAP §8.8 MUST ", 4),
    ("UAP §8.8 REQUIRED ", 2),
    ("UAP §8.8 text ", 2),
    ("UAP §9.1 text ", 1),
    ("UAP §9.2 text ", 1),
    ("UAP §9.3 text ", 1),
    ("UAP §9.4 text ", 1),
    ("UAP §10.1 text ", 1),
    ("UAP §10.2 text ", 1),
    ("UAP §10.3 text ", 1),
    ("UAP §10.4 text ", 2),
    ("UAP §11.1 text ", 1),
    ("UAP §11.2 text ", 1),
    ("UAP §11.4 MUST ", 2),
    ("UAP §12.1 REQUIRED ", 1),
    ("UAP §12.2 REQUIRED ", 1),
    ("UAP §12.3 MUST ", 5),
    ("UAP §12.4.1 text ", 1),
    ("UAP §12.4.2 text ", 1),
    ("UAP §12.4.3 text ", 1),
    ("UAP §12.4.4 text ", 1),
    ("UAP §12.4.5 MUST ", 3),
    ("UAP §12.4.6 text ", 1),
    ("UAP §12.4.7 MUST ", 5),
    ("UAP §12.4.8 SHOULD ", 3),
    ("UAP §13.1 text ", 1),
    ("UAP §13.3 text ", 1),
    ("UAP §14.1 text ", 4),
    ("UAP §14.2 MUST ", 8),
    ("UAP §14.3 MUST NOT ", 4),
    ("UAP §15.1 text ", 1),
    ("UAP §15.2 text ", 2),
    ("UAP §15.3 SHOULD ", 1),
    ("UAP §15.3 MUST ", 1),
    ("UAP §15.3 SHOULD NOT ", 1),
];

/// The rules of UPP-1.2 for language models, subject by subject.
const UPP: [Series; 20] = [
    ("UPP §1.", 7),
    ("UPP §2.", 7),
    ("UPP §3.", 7),
    ("UPP §4.", 7),
    ("UPP §5.", 5),
    ("UPP §6.", 5),
    ("UPP §7.", 3),
    ("UPP §8.", 3),
    ("UPP §9.", 4),
    ("UPP §10.", 10),
    ("UPP §11.", 5),
    ("UPP §12.", 4),
    ("UPP §13.", 11),
    ("UPP §14.", 9),
    ("UPP §15.", 4),
    ("UPP §17.", 7),
    ("UPP §18.", 4),
    ("UPP §20.", 10),
    ("UPP §21.", 8),
    ("UPP §22.", 19),
];

/// Every id, with the group it belongs to.
pub(super) fn all() -> impl Iterator<Item = (String, Group)> {
    GROUPS.into_iter().flat_map(|group| {
        let ids = group
            .series
            .iter()
            .flat_map(|(start, last)| (1..=*last).map(move |number| format!("{start}{number}")));
        ids.map(move |id| (id, group))
    })
}

/// Whether a cell is meant as an id, whether or not it must have a row.
pub(super) fn is_id(cell: &str) -> bool {
    let is_rule = ["UAP §", "UPP §", "gap ", "untested "];
    let is_rule = is_rule.iter().any(|start| cell.starts_with(start));
    is_rule
        || cell.rsplit_once('-').is_some_and(|(prefix, number)| {
            !prefix.is_empty()
                && prefix.bytes().all(|byte| byte.is_ascii_uppercase())
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}
