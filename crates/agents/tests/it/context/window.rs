//! A sliding window.

use super::*;

#[test]
fn a_window_keeps_the_latest_whole_cycles_behind_an_input() {
    for (kinds, max, expected) in [
        ("uaua", 4, vec!["u0", "a1", "u2", "a3"]),
        ("uaua", 3, vec!["u2", "a3"]),
        ("uaua", 2, vec!["u2", "a3"]),
        ("ucrauau", 5, vec!["u0", "a3", "u4", "a5", "u6"]),
        ("ucrcra", 4, vec!["u0", "c3", "r4", "a5"]),
        ("ucrcra", 3, vec!["u0", "a5"]),
        ("ucrc", 2, vec!["u0", "c3"]),
        ("suaua", 3, vec!["s0", "u3", "a4"]),
        ("sucrcr", 4, vec!["s0", "u1", "c4", "r5"]),
        ("acra", 2, vec!["a3"]),
        ("uuuaua", 3, vec!["u4", "a5"]),
        ("upapc", 3, vec!["u0", "p3", "c4"]),
        ("upcrcrc", 3, vec!["u0", "p1", "c6"]),
        ("upcrchgc", 5, vec!["u0", "p1", "c7"]),
        ("upcruaua", 5, vec!["u4", "a5", "u6", "a7"]),
    ] {
        let kept = now(&window(max), history(kinds));
        assert_eq!(ids(&kept), expected, "{kinds} {max}");
    }
}

#[test]
fn a_window_smaller_than_the_last_cycle_keeps_it_with_its_input() {
    let kept = now(&window(1), history("uaucrcr"));
    assert_eq!(ids(&kept), ["u2", "c5", "r6"]);
    let open = now(&window(1), history("uaucrc"));
    assert_eq!(ids(&open), ["u2", "c5"]);
    assert_eq!(open.open_calls().len(), 2);
}
