//! The maximum cost of a schema, computed by two walks over the graph of its subschemas.

use super::graph::{Edge, Graph, Node};
use super::locations::Locations;
use super::{Cost, MAX_CHAIN, MAX_PATH, MAX_PATHS, RefusedSchema, SchemaFault};

/// The evaluations and subschemas that a subschema can lead to.
#[derive(Clone, Copy, Default)]
struct Reach {
    /// Evaluations for the value that it applies to.
    here: u64,
    /// Evaluations for any one value inside that.
    inside: u64,
    /// Subschemas that apply to the same value inside each other.
    chain: usize,
    /// Subschemas inside each other.
    path: usize,
}

/// Finds the cost of the root.
///
/// # Errors
///
/// The cost of a subschema exceeds a limit, or it applies itself to the same value.
pub(super) fn of(places: &Locations<'_>, graph: &Graph) -> Result<Cost, RefusedSchema> {
    let nodes = &graph.nodes;
    let mut reaches = vec![Reach::default(); nodes.len()];
    let refused = |node: &Node, fault| RefusedSchema {
        pointer: places.pointer(node.location),
        fault,
    };
    let cycle = walk(
        nodes,
        |edge| edge == Edge::Same,
        |at, node| {
            let reach = same(node, &reaches);
            if reach.chain > MAX_CHAIN {
                return Err(refused(node, SchemaFault::Chain));
            }
            set(&mut reaches, at, reach);
            Ok(())
        },
    )?;
    if let Some(node) = cycle.and_then(|at| nodes.get(at)) {
        return Err(refused(node, SchemaFault::Endless));
    }
    // An edge that closes a cycle leads to a node without a path yet, and counts as nothing.
    walk(
        nodes,
        |_| true,
        |at, node| {
            let reach = any(node, get(&reaches, at), &reaches);
            if reach.path > MAX_PATH {
                return Err(refused(node, SchemaFault::Path));
            }
            if reach.here.max(reach.inside) > MAX_PATHS {
                return Err(refused(node, SchemaFault::Paths));
            }
            set(&mut reaches, at, reach);
            Ok(())
        },
    )?;
    Ok(Cost {
        values: places.len(),
        depth: get(&reaches, 0).path,
    })
}

/// The reach of a subschema for the value that it applies to.
fn same(node: &Node, reaches: &[Reach]) -> Reach {
    let mut reach = Reach::default();
    for target in targets(node, Edge::Same) {
        let target = get(reaches, target);
        reach.here = reach.here.saturating_add(target.here);
        reach.chain = reach.chain.max(target.chain);
    }
    if node.asks_twice {
        reach.here = reach.here.saturating_mul(2);
    }
    reach.here = reach.here.saturating_add(node.weight);
    reach.chain += 1;
    reach
}

/// The reach of a subschema for all values; `reach` is the one for its own value.
fn any(node: &Node, reach: Reach, reaches: &[Reach]) -> Reach {
    let of = |target: usize| {
        let target = get(reaches, target);
        // Open nodes have no path yet.
        let is_done = target.path > 0;
        if is_done { target } else { Reach::default() }
    };
    let most = |target: usize| of(target).here.max(of(target).inside);
    let add = |sum: u64, it: u64| sum.saturating_add(it);
    let same = targets(node, Edge::Same).map(|it| of(it).inside);
    let mut inside = same.fold(0, add);
    if node.asks_twice {
        inside = inside.saturating_mul(2);
    }
    inside = targets(node, Edge::Inner).map(most).fold(inside, add);
    for group in [Edge::Property, Edge::Item] {
        let largest = targets(node, group).map(most).max();
        inside = inside.saturating_add(largest.unwrap_or_default());
    }
    let paths = node.edges.iter().map(|(target, _)| of(*target).path);
    Reach {
        inside,
        path: paths.max().unwrap_or_default() + 1,
        ..reach
    }
}

fn targets(node: &Node, edge: Edge) -> impl Iterator<Item = usize> {
    let edges = node.edges.iter();
    edges
        .filter(move |(_, it)| *it == edge)
        .map(|(target, _)| *target)
}

fn get(reaches: &[Reach], at: usize) -> Reach {
    reaches.get(at).copied().unwrap_or_default()
}

fn set(reaches: &mut [Reach], at: usize, reach: Reach) {
    if let Some(place) = reaches.get_mut(at) {
        *place = reach;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

/// Visits every node after its targets, and returns a node on a cycle if there is one.
fn walk(
    nodes: &[Node],
    follows: impl Fn(Edge) -> bool,
    mut visit: impl FnMut(usize, &Node) -> Result<(), RefusedSchema>,
) -> Result<Option<usize>, RefusedSchema> {
    let mut marks = vec![Mark::New; nodes.len()];
    let mut cycle = None;
    for root in 0..nodes.len() {
        // Each open node with the number of its next edge.
        let mut open = vec![(root, 0)];
        while let Some((at, next)) = open.last_mut() {
            let (Some(mark), Some(node)) = (marks.get_mut(*at), nodes.get(*at)) else {
                break;
            };
            if *mark == Mark::Done {
                open.pop();
                continue;
            }
            *mark = Mark::Open;
            if let Some((target, edge)) = node.edges.get(*next) {
                *next += 1;
                if follows(*edge) {
                    match marks.get(*target) {
                        Some(Mark::New) => open.push((*target, 0)),
                        Some(Mark::Open) => cycle = cycle.or(Some(*target)),
                        Some(Mark::Done) | None => {}
                    }
                }
                continue;
            }
            *mark = Mark::Done;
            visit(*at, node)?;
            open.pop();
        }
    }
    Ok(cycle)
}
