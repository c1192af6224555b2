//! `purge`: deletes data for good, and proves it.

use crate::args::{Purge, Whose};
use crate::error::CliError;
use crate::output::{BAD, DIM, GOOD, Output, clean};
use crate::progress::Progress;
use crate::store::{Reach, StoreLocation, chosen};
use crate::threads::confirmed;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use server::OpenMode;
use server::purge::{self, Proof, Purged};
use std::io::IsTerminal as _;

pub(crate) async fn purge(
    place: &StoreLocation,
    options: Purge,
    output: &Output,
) -> Result<(), CliError> {
    let whose = Whose {
        tenant: options.tenant.clone(),
        server: None,
    };
    let reach = place.reach(&whose, OpenMode::ReadWrite).await?;
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let asks = !options.yes && !options.dry_run;
    if asks && !terminal && options.threads.is_empty() {
        let what =
            "expected --yes, because no terminal can be asked: this purges more than named threads";
        return Err(CliError::Usage { what: what.into() });
    }
    if asks && terminal && !confirmed(&question(&options), std::io::stdin().lock())? {
        return Err(CliError::NotConfirmed {
            what: "nothing is purged; --yes purges without asking".to_owned(),
        });
    }
    let days = options.unchanged_days;
    let since =
        days.map(|days| Timestamp::now() - SignedDuration::from_hours(24 * i64::from(days)));
    let (has_names, is_whole) = (!options.threads.is_empty(), options.all);
    let wanted = purge::Purge {
        threads: options.threads,
        unchanged_since: since,
        whole_tenant: options.all,
        removed: options.removed,
        dry_run: options.dry_run,
        no_compact: options.no_compact,
        shard: options.shard,
    };
    let progress = Progress::of_work("purging", output);
    let purged = match &reach {
        Reach::Server(client) => client.purge(&wanted).await,
        Reach::Store(app, tenant) => {
            let app = chosen(app, wanted.shard.as_deref(), Some(tenant.as_str()))?;
            app.purge(tenant, &wanted).await.map_err(CliError::from)
        }
    };
    drop(progress);
    reach.close().await?;
    let purged = purged?;
    output.value(&json!(purged))?;
    print(&purged, output)?;
    if purged.proof.left > 0 {
        let why = format!("{} samples of it are still in the store", purged.proof.left);
        return Err(CliError::NotPurged { why });
    }
    if (has_names || is_whole) && !purged.remaining.is_empty() {
        let why = format!("{} of the threads stay", purged.remaining.len());
        return Err(CliError::NotPurged { why });
    }
    Ok(())
}

/// The question on a terminal.
fn question(options: &Purge) -> String {
    let threads = match (&*options.threads, options.unchanged_days) {
        ([one], _) => format!("thread {}", clean(one)),
        ([], Some(days)) => format!("all threads that have not changed for {days} days"),
        ([], None) => "all threads".to_owned(),
        (many, _) => format!("{} threads", many.len()),
    };
    if options.removed {
        format!("Erase the removed messages of {threads} for good?")
    } else if options.all {
        "Delete all threads, files and checkpoints of the tenant for good?".to_owned()
    } else {
        format!("Delete {threads} for good?")
    }
}

fn print(purged: &Purged, output: &Output) -> Result<(), CliError> {
    let (deleted, erased) = if purged.dry_run {
        ("to delete", "to erase")
    } else {
        ("deleted", "erased")
    };
    let counted = |n, name| format!("{n} {name}{}", if n == 1 { "" } else { "s" });
    for thread in &purged.threads {
        let (key, bytes) = (clean(&thread.key), thread.bytes);
        output.line(&format!("{key}  {DIM}{bytes} bytes{DIM:#}"))?;
    }
    for remaining in &purged.remaining {
        let (key, why) = (clean(&remaining.key), clean(&remaining.why));
        output.line(&format!("{BAD}stays{BAD:#} {key}: {why}"))?;
    }
    output.line(&format!(
        "{} {deleted}; {} of the removed messages, answers and summaries {erased}, in {}",
        counted(purged.threads.len() as u64, "thread"),
        purged.entries,
        counted(purged.blocks, "block")
    ))?;
    if purged.objects + purged.checkpoints > 0 {
        output.line(&format!(
            "{} and {} deleted",
            counted(purged.objects, "object"),
            counted(purged.checkpoints, "checkpoint")
        ))?;
    }
    if purged.shown_by_forks > 0 {
        output.line(&format!(
            "{} removed messages, answers and summaries stay, because forks show them",
            purged.shown_by_forks
        ))?;
    }
    if purged.in_parents > 0 {
        output.line(&format!(
            "{} messages, answers and summaries stay, because only forks have removed them",
            purged.in_parents
        ))?;
    }
    if purged.dry_run {
        return Ok(());
    }
    let is_database = purged.log_empty.is_none();
    let how = if purged.compacted {
        ", written anew"
    } else {
        ""
    };
    if is_database {
        output.line(&format!(
            "{DIM}the tables were vacuumed{how}; the log, standby servers and backups of the database have their content longer{DIM:#}"
        ))?;
    } else {
        let [before, after] = purged.file_bytes;
        output.line(&format!(
            "{DIM}the file had {before} bytes and has {after}{how}{DIM:#}"
        ))?;
    }
    proof(&purged.proof, is_database, output)?;
    if let Some(error) = &purged.not_compacted {
        output.line(&format!(
            "{BAD}warn{BAD:#} the store was not written anew, so it may have parts of what was purged: {}",
            clean(error)
        ))?;
    }
    if purged.log_empty == Some(false) {
        output.line(&format!(
            "{BAD}warn{BAD:#} another process reads the store, so its write-ahead log is not empty; purge again"
        ))?;
    }
    for copy in &purged.copies {
        output.line(&format!(
            "{BAD}warn{BAD:#} {} is a copy from before an update and still has everything; delete it",
            copy.display()
        ))?;
    }
    Ok(())
}

fn proof(proof: &Proof, is_database: bool, output: &Output) -> Result<(), CliError> {
    let Proof {
        texts,
        samples,
        left,
        shared,
        ..
    } = proof;
    let searched = if proof.files_read {
        "in the bytes of the file and its log, and in all tables"
    } else if is_database {
        "in all tables"
    } else {
        "in all tables; the bytes of an encrypted file can't be searched"
    };
    let (mark, result) = if *left == 0 {
        (GOOD, "none is left".to_owned())
    } else {
        (BAD, format!("{left} are left"))
    };
    output.line(&format!(
        "{mark}proof{mark:#} {samples} samples of {texts} texts were searched {searched}: {result}"
    ))?;
    for place in &proof.left_at {
        output.line(&format!("  left: {}", clean(place)))?;
    }
    if *shared > 0 {
        output.line(&format!("{shared} samples are also in what stays:"))?;
        for place in &proof.shared_in {
            output.line(&format!("  {}", clean(place)))?;
        }
    }
    if proof.short_texts > 0 {
        let short = proof.short_texts;
        output.line(&format!(
            "{DIM}{short} texts have fewer than 16 bytes and can't be searched for{DIM:#}"
        ))?;
    }
    Ok(())
}
