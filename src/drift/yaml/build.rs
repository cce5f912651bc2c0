//! Events -> one JSON value, as Go's decoder builds it: last key wins, merge keys in place, aliases expanded
//! within limits. Knows nothing of the text or the parser.
//!
//! Source: go.yaml.in/yaml/v2 `decode.go`. One thing is stricter: a value that JSON cannot hold (`.inf`) or a key
//! that Helm refuses is an error at once, also where a later duplicate would have replaced it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, map::Entry};

use super::events::{Event, Events};
use super::scalar::{Scalar, is_merge, resolve};
use super::{Duplicates, Fault, YamlError};

/// Collections within collections, aliases expanded. Go's limit is 10,000; no API type is deeper than a few dozen.
const MAX_DEPTH: usize = 512;
/// What a node costs beside its text when an alias copies it, roughly, in bytes.
const NODE_BYTES: u64 = 128;

/// Deeper than this no API type goes, and each step costs libyaml time for every level that is open.
const DEEP: usize = 64;

/// What a stream may still cost. Go bounds the nodes that aliases make, document by document; a long text under many
/// aliases and many small documents are as bad.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Bytes that aliases may still copy.
    copies: u64,
    /// Events that may still come from below `DEEP` levels.
    deep: u64,
}

impl Default for Limits {
    /// Far above the 3 MiB an API server takes for one object; half a second at the deepest.
    fn default() -> Limits {
        Limits { copies: 64 << 20, deep: 250_000 }
    }
}

pub(super) struct Built {
    pub(super) value: Value,
    pub(super) duplicates: Duplicates,
    /// Of the root node, 1-based.
    pub(super) line: usize,
}

/// Shape: `Null` for no document at all.
pub(super) fn build(events: &mut impl Events, limits: &mut Limits) -> Result<Built, YamlError> {
    let mut builder = Builder {
        frames: Vec::new(),
        names: BTreeMap::new(),
        anchors: Vec::new(),
        root: Value::Null,
        duplicates: Duplicates::default(),
        // Go counts the document as a node.
        size: Size { nodes: 1, bytes: 0 },
        copied: 0,
        limits,
    };
    let mut first = None;
    while let Some((event, line)) = events.next()? {
        first.get_or_insert(line);
        builder.take(event).map_err(|fault| YamlError { line, fault })?;
    }
    Ok(Built { value: builder.root, duplicates: builder.duplicates, line: first.unwrap_or(1) })
}

struct Builder<'l> {
    /// The open collections, outermost first.
    frames: Vec<Frame>,
    /// Anchor -> its place in `anchors`; the last definition counts.
    names: BTreeMap<String, usize>,
    /// `None` while the node is still open: an alias to it would contain itself.
    anchors: Vec<Option<Anchored>>,
    root: Value,
    duplicates: Duplicates,
    /// All that was decoded so far, expanded aliases included.
    size: Size,
    /// Nodes that came from aliases.
    copied: u64,
    limits: &'l mut Limits,
}

struct Frame {
    content: Content,
    anchor: Option<usize>,
    /// What was decoded before this collection.
    before: Size,
    /// Of the deepest child.
    height: usize,
}

enum Content {
    List(Vec<Value>),
    Map(Mapping),
    /// The list after `<<:`.
    Merges(Vec<Map<String, Value>>),
}

#[derive(Default)]
struct Mapping {
    entries: Map<String, Value>,
    /// Keys that `<<` brought: writing them out is no duplicate.
    merged: BTreeSet<String>,
    expects: Expects,
}

#[derive(Default)]
enum Expects {
    #[default]
    Key,
    Value(String),
    Merge,
}

#[derive(Clone, Copy)]
struct Size {
    nodes: u64,
    bytes: u64,
}

#[derive(Clone)]
enum Node {
    Scalar(Scalar),
    Collection(Value),
}

struct Anchored {
    node: Node,
    size: Size,
    height: usize,
}

impl Node {
    fn into_value(self) -> Result<Value, Fault> {
        match self {
            Node::Scalar(scalar) => scalar.into_value(),
            Node::Collection(value) => Ok(value),
        }
    }

    fn into_map(self) -> Result<Map<String, Value>, Fault> {
        match self {
            Node::Collection(Value::Object(map)) => Ok(map),
            _ => Err(Fault::Merge),
        }
    }
}

impl Builder<'_> {
    fn take(&mut self, event: Event) -> Result<(), Fault> {
        if self.frames.len() > DEEP {
            self.limits.deep = self.limits.deep.checked_sub(1).ok_or(Fault::Depth)?;
        }
        match event {
            Event::Scalar { anchor, tag, plain, text } => {
                let before = self.size;
                let slot = self.open_anchor(anchor);
                let merge = self.expects_key() && is_merge(tag.as_deref(), plain, &text);
                let scalar = resolve(tag.as_deref(), plain, text)?;
                self.count(u64::from(!merge), scalar.len() as u64)?;
                let node = Node::Scalar(scalar);
                self.keep_anchor(slot, &node, before, 0)?;
                if merge {
                    self.expect(Expects::Merge);
                    return Ok(());
                }
                self.deliver(node, 0)
            }
            Event::Alias(name) => self.alias(&name),
            Event::Sequence { anchor } if self.expects_merge() => self.open(anchor, Content::Merges(Vec::new())),
            Event::Sequence { anchor } => {
                self.count(1, 0)?;
                self.open(anchor, Content::List(Vec::new()))
            }
            Event::Mapping { anchor } => {
                self.count(1, 0)?;
                self.open(anchor, Content::Map(Mapping::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
        }
    }

    fn open(&mut self, anchor: Option<String>, content: Content) -> Result<(), Fault> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(Fault::Depth);
        }
        if self.expects_key() {
            return Err(Fault::Key);
        }
        let anchor = self.open_anchor(anchor);
        // The collection's own node is counted already and belongs to what its anchor stands for.
        let before = Size { nodes: self.size.nodes.saturating_sub(1), bytes: self.size.bytes };
        self.frames.push(Frame { content, anchor, before, height: 0 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let height = frame.height + 1;
        let value = match frame.content {
            Content::List(items) => Value::Array(items),
            Content::Map(mapping) => Value::Object(mapping.entries),
            Content::Merges(maps) => {
                if frame.anchor.is_some() {
                    let list = Value::Array(maps.iter().cloned().map(Value::Object).collect());
                    self.keep_anchor(frame.anchor, &Node::Collection(list), frame.before, height)?;
                }
                // The first map of the list wins, so it comes last.
                for map in maps.into_iter().rev() {
                    self.merge(map);
                }
                self.expect(Expects::Key);
                return Ok(());
            }
        };
        let node = Node::Collection(value);
        self.keep_anchor(frame.anchor, &node, frame.before, height)?;
        self.deliver(node, height)
    }

    fn alias(&mut self, name: &str) -> Result<(), Fault> {
        let slot = *self.names.get(name).ok_or(Fault::UnknownAnchor)?;
        let Some(Some(anchored)) = self.anchors.get(slot) else { return Err(Fault::Cycle) };
        let Anchored { size, height, .. } = *anchored;
        if self.frames.len() + height > MAX_DEPTH {
            return Err(Fault::Depth);
        }
        self.copied += size.nodes;
        self.count(1 + size.nodes, size.bytes)?;
        self.spend(size)?;
        let Some(Some(anchored)) = self.anchors.get(slot) else { return Err(Fault::Cycle) };
        let node = anchored.node.clone();
        self.deliver(node, height)
    }

    /// Puts a whole node where the innermost open collection expects it.
    fn deliver(&mut self, node: Node, height: usize) -> Result<(), Fault> {
        let Some(frame) = self.frames.last_mut() else {
            self.root = node.into_value()?;
            return Ok(());
        };
        frame.height = frame.height.max(height);
        let mapping = match &mut frame.content {
            Content::List(items) => {
                items.push(node.into_value()?);
                return Ok(());
            }
            Content::Merges(maps) => {
                maps.push(node.into_map()?);
                return Ok(());
            }
            Content::Map(mapping) => mapping,
        };
        match std::mem::take(&mut mapping.expects) {
            Expects::Key => {
                let Node::Scalar(scalar) = node else { return Err(Fault::Key) };
                mapping.expects = Expects::Value(scalar.into_key()?);
            }
            Expects::Value(key) => match mapping.entries.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(node.into_value()?);
                }
                Entry::Occupied(mut entry) => {
                    entry.insert(node.into_value()?);
                    if !mapping.merged.remove(entry.key()) && self.duplicates.wanted() {
                        let key = entry.key().clone();
                        let path = self.path(&key);
                        self.duplicates.add(path);
                    }
                }
            },
            Expects::Merge => {
                let map = node.into_map()?;
                self.merge(map);
            }
        }
        Ok(())
    }

    /// Unlike the YAML specification: what stands before `<<` is replaced, what stands after it replaces.
    fn merge(&mut self, map: Map<String, Value>) {
        if let Some(Frame { content: Content::Map(mapping), .. }) = self.frames.last_mut() {
            for (key, value) in map {
                mapping.merged.insert(key.clone());
                mapping.entries.insert(key, value);
            }
        }
    }

    fn expects_key(&self) -> bool {
        let content = self.frames.last().map(|frame| &frame.content);
        matches!(content, Some(Content::Map(Mapping { expects: Expects::Key, .. })))
    }

    fn expects_merge(&self) -> bool {
        let content = self.frames.last().map(|frame| &frame.content);
        matches!(content, Some(Content::Map(Mapping { expects: Expects::Merge, .. })))
    }

    fn expect(&mut self, next: Expects) {
        if let Some(Frame { content: Content::Map(mapping), .. }) = self.frames.last_mut() {
            mapping.expects = next;
        }
    }

    fn open_anchor(&mut self, name: Option<String>) -> Option<usize> {
        let name = name?;
        let slot = self.anchors.len();
        self.anchors.push(None);
        self.names.insert(name, slot);
        Some(slot)
    }

    fn keep_anchor(&mut self, slot: Option<usize>, node: &Node, before: Size, height: usize) -> Result<(), Fault> {
        let Some(slot) = slot else { return Ok(()) };
        let size = Size { nodes: self.size.nodes - before.nodes, bytes: self.size.bytes - before.bytes };
        self.spend(size)?;
        if let Some(place) = self.anchors.get_mut(slot) {
            *place = Some(Anchored { node: node.clone(), size, height });
        }
        Ok(())
    }

    /// Go's limit: the larger the document, the smaller the share of it that may come from aliases.
    fn count(&mut self, nodes: u64, bytes: u64) -> Result<(), Fault> {
        self.size.nodes += nodes;
        self.size.bytes += bytes;
        let (all, copied) = (self.size.nodes as f64, self.copied as f64);
        let allowed = 0.99 - 0.89 * ((all - 400_000.0) / 3_600_000.0).clamp(0.0, 1.0);
        if self.copied > 100 && self.size.nodes > 1000 && copied / all > allowed {
            return Err(Fault::Aliases);
        }
        Ok(())
    }

    fn spend(&mut self, size: Size) -> Result<(), Fault> {
        let bytes = size.bytes.saturating_add(size.nodes.saturating_mul(NODE_BYTES));
        self.limits.copies = self.limits.copies.checked_sub(bytes).ok_or(Fault::Aliases)?;
        Ok(())
    }

    /// `.spec.containers[0].env`, ending in `key`.
    fn path(&self, key: &str) -> String {
        let mut path = String::new();
        for frame in &self.frames {
            match &frame.content {
                Content::List(items) => path.push_str(&format!("[{}]", items.len())),
                Content::Map(Mapping { expects: Expects::Value(key), .. }) => {
                    path.push('.');
                    path.push_str(key);
                }
                Content::Map(_) | Content::Merges(_) => {}
            }
        }
        path + "." + key
    }
}
