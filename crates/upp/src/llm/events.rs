//! The events of tools (UPP §9).

use crate::event::StreamEvent;
use crate::tool::{ToolCall, ToolExecution};

pub(super) fn started(index: u32, call: &ToolCall) -> StreamEvent {
    StreamEvent::ToolExecutionStart {
        index,
        tool_call_id: call.tool_call_id.clone(),
        tool_name: call.tool_name.clone(),
        timestamp: crate::clock::now().as_millisecond(),
    }
}

pub(super) fn stopped(at: usize, execution: &ToolExecution) -> StreamEvent {
    StreamEvent::ToolExecutionEnd {
        index: u32::try_from(at).unwrap_or(u32::MAX),
        tool_call_id: execution.tool_call_id.clone(),
        tool_name: execution.tool_name.clone(),
        result: execution.result.clone(),
        is_error: execution.is_error,
        timestamp: crate::clock::now().as_millisecond(),
    }
}
