//! What the views of A2A say of a log.

use super::golden::{Golden, Marked, lines};
use super::log::RunLog;
use loomline_interop::a2a::{PendingCallView, TaskOptions, TaskRun, TaskView, TaskWait};
use timeline::OpenCall;

const SHOWN: TaskOptions<'_> = TaskOptions {
    id: "task",
    context_id: "k",
    history_length: None,
    artifacts: true,
};

fn asked(log: &RunLog, own: &[OpenCall]) -> Vec<PendingCallView> {
    let own = own.iter().filter_map(|call| PendingCallView::of("k", call));
    let beneath = log.beneath.iter();
    own.chain(beneath.filter_map(|(key, call)| PendingCallView::of(key, call)))
        .collect()
}

/// A task's stream. Nothing that it asks by AITP is open.
fn streamed(mut view: TaskView, log: &RunLog, from: usize) -> String {
    let mut marked = Marked::default();
    for record in &log.records[from..] {
        let mut said = view.responses(record);
        if view.wants_requests() {
            said.extend(view.requests((&[], 0), record.at));
        }
        if view.wants_calls() {
            let last = log.executions().pop().map(|it| it.execution.id.clone());
            said.extend(view.calls(Some(&asked(log, &[])), last.as_ref()));
        }
        marked.push(record.seq, &lines(said));
    }
    marked.finish()
}

pub(super) fn views(log: &RunLog) -> String {
    let mut golden = Golden::default();
    for (n, began) in log.executions().iter().enumerate() {
        let name = |kind: &str| format!("{n} {kind}");
        let view = || TaskView::new("task", "k", began.trigger_id());
        golden.section(&name("stream"), streamed(view(), log, 0));
        golden.section(
            &name("without history"),
            streamed(view().with_history(Some(0)), log, 0),
        );
        golden.section(
            &name("running"),
            streamed(view().running(), log, began.place),
        );
        let end = log.end_of(began);
        golden.section(&name("asking"), streamed(view().asking(), log, end));
        golden.section(&name("resting"), streamed(view().resting(), log, end));
        golden.section(
            &name("awaiting"),
            streamed(view().asking().awaiting_answer(), log, end),
        );
    }
    for (moment, n_records) in log.moments() {
        let transcript = log.transcript(n_records);
        for (n, run) in TaskRun::all(&transcript).into_iter().enumerate() {
            let name = |kind: &str| format!("task {n} {kind} {moment}");
            golden.section(
                &name("alone"),
                run.to_json(SHOWN, &TaskWait::default()).to_string(),
            );
            let open = run.leaves_open().map(|id| log.left_by(id));
            let calls = open.map(|open| asked(log, &open));
            let waiting = TaskWait {
                calls,
                ..TaskWait::default()
            };
            golden.section(&name("waiting"), run.to_json(SHOWN, &waiting).to_string());
            let last = TaskOptions {
                history_length: Some(1),
                artifacts: false,
                ..SHOWN
            };
            golden.section(&name("short"), run.to_json(last, &waiting).to_string());
        }
    }
    golden.finish()
}
