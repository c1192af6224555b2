//! The credentials that may post as each party.

use super::*;

#[test]
fn leaving_out_the_id_is_no_way_around_the_binding() {
    let mut log = Log::new(None);
    let begin = ParticipantChange::Join {
        actor: Actor::new("a", []),
        principal: Some("key_1".to_owned()),
        initiator: true,
    };
    log.change(begin).unwrap();
    log.change(join("b", Some("key_2"))).unwrap();
    let roster = &log.roster;
    let initiator = PartyBinding {
        party: Party::Initiator,
        is_bound: true,
    };
    let user = Some(Role::User);
    assert_eq!(roster.may_speak("key_1", None, user), Ok(initiator));
    let unnamed = |id: &str| Err(MayNotSpeak::Unnamed(id.to_owned()));
    assert_eq!(roster.may_speak("key_2", None, user), unnamed("b"));
    let other = Err(MayNotSpeak::NotBoundToIt("a".to_owned()));
    assert_eq!(roster.may_speak("key_3", None, user), other);
    for key in ["key_1", "key_2"] {
        let found = roster.may_speak(key, None, Some(Role::Assistant));
        assert!(matches!(found, Err(MayNotSpeak::Unnamed(_))), "{key}");
    }
    let guest = PartyBinding {
        party: Party::Assistant,
        is_bound: false,
    };
    let assistant = Some(Role::Assistant);
    assert_eq!(roster.may_speak("key_3", None, assistant), Ok(guest));
    // Nor is leaving the thread.
    log.change(leave("b")).unwrap();
    let found = log.roster.may_speak("key_2", None, assistant);
    assert_eq!(found, unnamed("b"));
}

#[test]
fn a_credential_that_is_an_actors_never_speaks_for_an_initiator_without_one() {
    let mut log = Log::new(Some(json!({"actors": [{"id": "a"}]})));
    say(&mut log, Some(json!("a")));
    log.change(join("b", Some("key_2"))).unwrap();
    let user = Some(Role::User);
    let unnamed = Err(MayNotSpeak::Unnamed("b".to_owned()));
    assert_eq!(log.roster.may_speak("key_2", None, user), unnamed);
    let free = PartyBinding {
        party: Party::Initiator,
        is_bound: false,
    };
    assert_eq!(log.roster.may_speak("key_3", None, user), Ok(free));
}

#[test]
fn who_says_neither_an_actor_nor_a_role_is_nobody() {
    let mut log = Log::new(None);
    let nobody = Err(MayNotSpeak::Nobody);
    assert_eq!(log.roster.may_speak("key_1", None, None), nobody);
    assert_eq!(log.roster.party(None, None), None);
    log.change(join("a", None)).unwrap();
    assert_eq!(log.roster.may_speak("key_1", None, None), nobody);
    assert_eq!(log.roster.party(Some("b"), Some(Role::User)), None);
    log.change(leave("a")).unwrap();
    assert_eq!(log.roster.party(Some("a"), Some(Role::User)), None);
}
