//! One desired object against the live one: every difference, with what is needed to judge it. No opinion about meaning.
//!
//! The rules are design.md §5.3: values are equal by meaning, lists by key, and what the server itself fills in or drops is
//! marked (`fill`) or left out. Owners are looked up here, where the way to the field is known, but never weighed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::defaults::{self, Fill, Frame, Kept};
use super::equal::{Unit, is_rounded, is_zero, same, same_json, same_quantity};
use super::finding::Change;
use super::object::{FieldPath, Gvk, Segment, pointer_token};
use super::owners::{EntryId, OwnerNode, Owners};
use super::schema::{ANY, ListKind, Schema, Shape, Slot, Type};

/// What kind of difference it is, beside its [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    Plain,
    /// Desired is a zero that the server does not store, live is another value: judged as if desired were absent.
    DroppedZero,
    /// An atomic value that differs only in parts that live has in addition (`parts`).
    ExtraInside,
    /// The same items in another order, where order means nothing.
    Reordered,
    /// Items in another order, where order counts. Nobody owns an order: a write that changes nothing else leaves no trace.
    Order,
    /// Desired is no zero and not there, yet Apply managers (`holders`) own it: no difference if one of them is Helm.
    NotStored,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) path: FieldPath,
    /// RFC 6901, into the live object.
    pub(crate) pointer: String,
    pub(crate) change: Change,
    pub(crate) desired: Option<Value>,
    pub(crate) live: Option<Value>,
    pub(crate) nature: Nature,
    /// Entries that hold the live value or anything below it; of an atomic value around it, that value's.
    pub(crate) holders: Vec<EntryId>,
    pub(crate) fill: Option<Fill>,
    /// What an added map or item is made of, or what an atomic value has in addition.
    pub(crate) parts: Vec<Difference>,
}

/// Something that was noticed on the way and is no difference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Remark {
    /// A field that the schema does not know and the server pruned.
    Pruned(FieldPath),
    /// Two items of a list with the same key.
    DuplicateItem(FieldPath),
}

#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) differences: Vec<Difference>,
    pub(crate) remarks: Vec<Remark>,
}

/// Compares one object.
///
/// Shape: both bodies with `apiVersion`, `kind` and `metadata`; `schema` of the group version that live was read in,
/// `None` where the cluster gives none.
pub(crate) fn compare(
    kind: &Gvk,
    desired: &Value,
    live: &Value,
    schema: Option<&Schema>,
    owners: &Owners,
) -> Comparison {
    static EMPTY: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(Schema::default);
    let types = schema.unwrap_or(&EMPTY);
    let root = types.root(kind);
    let mut walk = Walk {
        kind,
        types,
        typed: root.is_some(),
        steps: Vec::new(),
        spots: Vec::new(),
        frames: Vec::new(),
        inside: None,
        depth: 0,
        remarks: Vec::new(),
    };
    let mut differences = walk.value(root.unwrap_or(&ANY), desired, live, Some(&owners.root), owners);
    differences.sort_by_cached_key(|difference| difference.path.to_string());
    Comparison { differences, remarks: walk.remarks }
}

/// A [`Segment`] that borrows.
#[derive(Clone, Debug)]
enum Step<'a> {
    Field(&'a str),
    Item(Vec<(&'a str, &'a Value)>),
    Member(&'a Value),
    Index(usize),
}

/// A reference token of a pointer into live.
#[derive(Clone, Copy, Debug)]
enum Spot<'a> {
    Key(&'a str),
    Index(usize),
    /// After the last item of a list.
    End,
}

struct Walk<'a> {
    kind: &'a Gvk,
    types: &'a Schema,
    /// The cluster told the types of this kind.
    typed: bool,
    steps: Vec<Step<'a>>,
    spots: Vec<Spot<'a>>,
    frames: Vec<Frame<'a>>,
    /// Inside an atomic value: its owners, which are those of everything in it.
    inside: Option<Vec<EntryId>>,
    depth: usize,
    remarks: Vec<Remark>,
}

/// Manifests nest less; what nests deeper is compared as one value.
const MAX_DEPTH: usize = 400;

impl<'a> Walk<'a> {
    fn value(
        &mut self,
        ty: &'a Type,
        desired: &'a Value,
        live: &'a Value,
        node: Option<&'a OwnerNode>,
        owners: &'a Owners,
    ) -> Vec<Difference> {
        if self.depth > MAX_DEPTH {
            return if same_json(desired, live) { Vec::new() } else { vec![self.changed(desired, live, node)] };
        }
        self.depth += 1;
        let differences = match (desired, live, &ty.shape) {
            (Value::Object(d), Value::Object(l), Shape::Map(_) | Shape::Any) => {
                let atomic = matches!(&ty.shape, Shape::Map(map) if map.atomic) || self.unfolded(node, ty);
                self.atomically(atomic, desired, live, node, |walk| walk.map(ty, desired, live, d, l, node, owners))
            }
            (Value::Array(d), Value::Array(l), Shape::List { .. } | Shape::Any | Shape::Map(_)) => {
                self.list(ty, desired, live, d, l, node, owners)
            }
            _ if self.equal(&ty.shape, desired, live) => Vec::new(),
            _ => vec![self.changed(desired, live, node)],
        };
        self.depth -= 1;
        differences
    }

    /// Without a type, a map that somebody owns as a whole and nobody in part is atomic.
    fn unfolded(&self, node: Option<&OwnerNode>, ty: &Type) -> bool {
        !self.typed
            && matches!(ty.shape, Shape::Any)
            && node.is_some_and(|node| !node.whole().is_empty() && !node.has_children())
    }

    fn equal(&self, shape: &Shape, desired: &Value, live: &Value) -> bool {
        same(shape, desired, live)
            || (matches!(shape, Shape::Quantity) && self.unit().is_some_and(|unit| is_rounded(desired, live, unit)))
            // Where nobody tells the types, another spelling of the same amount is not called a change.
            || (!self.typed && matches!(shape, Shape::Any) && (desired.is_number() || live.is_string()) && same_quantity(desired, live))
    }

    /// To what the server rounds an amount here; `None` in a custom resource, which it keeps as it was sent.
    fn unit(&self) -> Option<Unit> {
        let (map, above) = self.frames.split_last().filter(|(map, _)| !map.custom)?;
        let owner = above.last().and_then(|frame| frame.definition).unwrap_or_default();
        // The entries of a list of resources: a map of amounts that has no name of its own, in all groups but one.
        let of_resources =
            map.definition.is_none() && owner.starts_with("io.k8s.api.") && !owner.starts_with("io.k8s.api.resource.");
        Some(if of_resources { Unit::Milli } else { Unit::Nano })
    }

    /// Runs a comparison whose result counts as one value when `atomic`.
    fn atomically(
        &mut self,
        atomic: bool,
        desired: &'a Value,
        live: &'a Value,
        node: Option<&'a OwnerNode>,
        compare: impl FnOnce(&mut Self) -> Vec<Difference>,
    ) -> Vec<Difference> {
        if !atomic || self.inside.is_some() {
            return compare(self);
        }
        self.inside = Some(node.map(OwnerNode::holders).unwrap_or_default());
        let within = compare(self);
        self.inside = None;
        if within.is_empty() {
            return within;
        }
        let mut whole = self.changed(desired, live, node);
        // A zero that the server drops is, inside too, the same as absent.
        if within.iter().all(|part| part.change == Change::Added || part.nature == Nature::DroppedZero) {
            whole.nature = Nature::ExtraInside;
            whole.parts = within;
        }
        vec![whole]
    }

    #[expect(clippy::too_many_arguments, reason = "both sides as values and as maps, so that frames can borrow")]
    fn map(
        &mut self,
        ty: &'a Type,
        desired: &'a Value,
        live: &'a Value,
        d: &'a serde_json::Map<String, Value>,
        l: &'a serde_json::Map<String, Value>,
        node: Option<&'a OwnerNode>,
        owners: &'a Owners,
    ) -> Vec<Difference> {
        let mut found = Vec::new();
        self.push_frame(ty, Some(desired), live);
        for (key, wanted) in d {
            if self.is_left_out(ty, key) {
                continue;
            }
            let below = node.and_then(|node| node.field(key));
            let slot = self.types.slot(ty, key);
            self.steps.push(Step::Field(key));
            self.spots.push(Spot::Key(key));
            match (wanted, l.get(key)) {
                (Value::Null, None | Some(Value::Null)) => {}
                // A null is an absent field. As the entry of a map it is stored as a zero, and that is no difference.
                (Value::Null, Some(value)) => {
                    if !is_zero(value) || matches!(slot, Slot::Field(..)) {
                        found.extend(self.live_only(slot, key, value, below));
                    }
                }
                (_, None | Some(Value::Null)) => found.extend(self.absent(ty, slot, key, wanted, below, owners)),
                (_, Some(value)) => {
                    let inner = self.value(slot_type(slot), wanted, value, below, owners);
                    // What was added to an empty map or list is named there; a scalar or atomic value is judged as if it were absent.
                    let replaced = inner.iter().any(|one| one.change != Change::Added);
                    if replaced && is_zero(wanted) && self.is_dropped(ty, slot, key, value) {
                        found.push(self.dropped_zero(slot, key, wanted, value, below));
                    } else {
                        found.extend(inner);
                    }
                }
            }
            self.steps.pop();
            self.spots.pop();
        }
        for (key, value) in l {
            if d.contains_key(key) || value.is_null() || self.is_left_out(ty, key) {
                continue;
            }
            self.steps.push(Step::Field(key));
            self.spots.push(Spot::Key(key));
            let below = node.and_then(|node| node.field(key));
            found.extend(self.live_only(self.types.slot(ty, key), key, value, below));
            self.steps.pop();
            self.spots.pop();
        }
        self.frames.pop();
        found
    }

    fn push_frame(&mut self, ty: &'a Type, desired: Option<&'a Value>, live: &'a Value) {
        let key = match self.steps.last() {
            Some(Step::Field(key)) => key,
            _ => "",
        };
        self.frames.push(Frame { key, definition: ty.definition.as_deref(), custom: ty.custom, desired, live });
    }

    /// What is never compared: identity, and what the server alone writes (design.md §5.1).
    fn is_left_out(&self, ty: &Type, key: &str) -> bool {
        match self.steps.as_slice() {
            // Claim templates have a status too.
            _ if key == "status" && ty.definition.as_deref() == Some("io.k8s.api.core.v1.PersistentVolumeClaim") => {
                true
            }
            [] => matches!(key, "apiVersion" | "kind" | "status"),
            [Step::Field("metadata")] => matches!(
                key,
                "name"
                    | "namespace"
                    | "creationTimestamp"
                    | "managedFields"
                    | "resourceVersion"
                    | "uid"
                    | "generation"
                    | "selfLink"
                    | "deletionTimestamp"
                    | "deletionGracePeriodSeconds"
            ),
            _ => false,
        }
    }

    /// Whether the server leaves the field out when it is zero, or puts the default that live has in its place.
    fn is_dropped(&self, ty: &Type, slot: Slot<'_>, key: &str, live: &Value) -> bool {
        match slot {
            Slot::Field(..) => {
                !ty.custom
                    && ty.definition.as_deref().is_some_and(|definition| match defaults::kept(definition, key) {
                        None => true,
                        Some(Kept::Always) => self.fill(slot, key, live) == Some(Fill::Default),
                        Some(Kept::Pointer) => false,
                    })
            }
            Slot::Entry(..) | Slot::Open | Slot::Unknown => false,
        }
    }

    /// Desired, but not there.
    fn absent(
        &mut self,
        ty: &'a Type,
        slot: Slot<'a>,
        key: &str,
        wanted: &'a Value,
        node: Option<&OwnerNode>,
        owners: &Owners,
    ) -> Option<Difference> {
        if matches!(slot, Slot::Unknown) && self.inside.is_none() {
            self.remarks.push(Remark::Pruned(self.path()));
            return None;
        }
        if matches!(slot, Slot::Unknown) || self.vanishes(ty, slot, key, wanted) {
            return None;
        }
        let appliers = appliers(wanted, node, owners);
        if appliers.is_empty() || defaults::is_stored(&self.frames, key) {
            return Some(self.removed(wanted));
        }
        // That the server drops a zero is shown by whoever applied one; of another value by Helm alone, as others may have applied a
        // zero in its place.
        (!is_zero_throughout(wanted)).then(|| {
            let mut difference = self.removed(wanted);
            difference.nature = Nature::NotStored;
            difference.holders = appliers;
            difference
        })
    }

    /// Whether a field with this value is the same as no field.
    fn vanishes(&self, ty: &Type, slot: Slot<'_>, key: &str, wanted: &Value) -> bool {
        if wanted.is_null() {
            return true;
        }
        if !self.typed {
            // Built-in types drop most zeros; a custom resource keeps what it is sent.
            return is_zero(wanted) && (!self.kind.group.contains('.') || self.kind.group.ends_with(".k8s.io"));
        }
        let field = match slot {
            Slot::Field(field, _) if !ty.custom => field,
            Slot::Unknown => return true,
            Slot::Field(..) | Slot::Entry(..) | Slot::Open => return false,
        };
        let Some(definition) = ty.definition.as_deref() else { return false };
        if defaults::kept(definition, key) == Some(Kept::Pointer) {
            return false;
        }
        match wanted {
            // A struct whose fields all vanish is empty itself.
            Value::Object(map) if !map.is_empty() => {
                map.iter().all(|(key, value)| self.vanishes(field, self.types.slot(field, key), key, value))
            }
            _ => is_zero(wanted),
        }
    }

    fn dropped_zero(
        &self,
        slot: Slot<'a>,
        key: &'a str,
        wanted: &Value,
        value: &'a Value,
        node: Option<&OwnerNode>,
    ) -> Difference {
        let mut difference = self.changed(wanted, value, node);
        difference.nature = Nature::DroppedZero;
        difference.fill = self.fill(slot, key, value);
        difference
    }

    fn fill(&self, slot: Slot<'_>, key: &str, value: &Value) -> Option<Fill> {
        // Built-in types declare defaults too, but those are Go zeros, not what the server fills in.
        let in_custom = self.frames.last().is_some_and(|frame| frame.custom);
        match slot {
            Slot::Field(ty, Some(default)) | Slot::Entry(ty, Some(default))
                if in_custom && same(&ty.shape, default, value) =>
            {
                Some(Fill::Default)
            }
            // A struct that is no pointer is always written, as `{}` when empty.
            Slot::Field(_, Some(Value::Object(default)))
                if default.is_empty() && value.as_object().is_some_and(serde_json::Map::is_empty) =>
            {
                Some(Fill::Default)
            }
            _ => defaults::fill(self.kind, &self.frames, key, value),
        }
    }

    /// Live, but not desired. Nothing when the server put it there itself.
    fn live_only(
        &mut self,
        slot: Slot<'a>,
        key: &'a str,
        value: &'a Value,
        node: Option<&'a OwnerNode>,
    ) -> Option<Difference> {
        let mut difference = self.added(value, node);
        difference.fill = self.fill(slot, key, value);
        let ty = slot_type(slot);
        let atomic = matches!(&ty.shape, Shape::Map(map) if map.atomic) || self.unfolded(node, ty);
        // Inside an atomic value every part must be explained by itself.
        if !atomic || self.inside.is_some() {
            difference.parts = self.parts(ty, value, node);
        }
        self.explain(&mut difference);
        Some(difference)
    }

    /// A value all of whose parts the server fills in is filled in itself.
    fn explain(&self, difference: &mut Difference) {
        if difference.fill.is_none()
            && !difference.parts.is_empty()
            && difference.parts.iter().all(|part| matches!(part.fill, Some(Fill::Default | Fill::Allocated)))
        {
            difference.fill = Some(Fill::Default);
        }
    }

    fn parts(&mut self, ty: &'a Type, value: &'a Value, node: Option<&'a OwnerNode>) -> Vec<Difference> {
        if self.depth > MAX_DEPTH {
            return Vec::new();
        }
        self.depth += 1;
        let parts = match value {
            Value::Object(map) => {
                self.push_frame(ty, None, value);
                let mut parts = Vec::new();
                for (key, value) in map {
                    if value.is_null() {
                        continue;
                    }
                    self.steps.push(Step::Field(key));
                    self.spots.push(Spot::Key(key));
                    parts.extend(self.live_only(
                        self.types.slot(ty, key),
                        key,
                        value,
                        node.and_then(|node| node.field(key)),
                    ));
                    self.steps.pop();
                    self.spots.pop();
                }
                self.frames.pop();
                parts
            }
            Value::Array(items) => match self.list_kind(ty, node) {
                ListKind::Map(keys) => {
                    let item_type = self.types.items(ty);
                    let mut parts = Vec::new();
                    for (index, item) in items.iter().enumerate() {
                        let Some(item_keys) = self.keys_of(item_type, &keys, item) else { continue };
                        let below = node.and_then(|node| node.item(&item_keys));
                        self.steps.push(Step::Item(item_keys));
                        self.spots.push(Spot::Index(index));
                        parts.push(self.added_item(item_type, item, below));
                        self.steps.pop();
                        self.spots.pop();
                    }
                    parts
                }
                ListKind::Set => items
                    .iter()
                    .enumerate()
                    .map(|(index, member)| {
                        let fill = self.protection(member);
                        self.steps.push(Step::Member(member));
                        self.spots.push(Spot::Index(index));
                        let mut part = self.added(member, node.and_then(|node| node.member(member)));
                        part.fill = fill;
                        self.steps.pop();
                        self.spots.pop();
                        part
                    })
                    .collect(),
                ListKind::Atomic => Vec::new(),
            },
            _ => Vec::new(),
        };
        self.depth -= 1;
        parts
    }

    /// An item that only live has: one unit, whatever it is made of.
    fn added_item(&mut self, ty: &'a Type, item: &'a Value, node: Option<&'a OwnerNode>) -> Difference {
        let mut difference = self.added(item, node);
        if let [.., Step::Field(list), Step::Item(_)] = self.steps.as_slice() {
            difference.fill = defaults::item_fill(self.kind, list, item);
        }
        // `k:{…}: {}` owns the whole item; otherwise its parts say who.
        if node.is_none_or(|node| node.has_children() || node.whole().is_empty()) {
            difference.parts = self.parts(ty, item, node);
        }
        difference
    }

    fn list_kind(&self, ty: &Type, node: Option<&OwnerNode>) -> ListKind {
        match &ty.shape {
            Shape::List { kind, .. } => kind.clone(),
            // Without types, the entries' own `k:` keys tell how a list is keyed (design.md §5.2).
            Shape::Any if !self.typed => node.and_then(OwnerNode::item_keys).map_or(ListKind::Atomic, ListKind::Map),
            _ => ListKind::Atomic,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "both sides as values and as lists, so that frames can borrow")]
    fn list(
        &mut self,
        ty: &'a Type,
        desired: &'a Value,
        live: &'a Value,
        d: &'a [Value],
        l: &'a [Value],
        node: Option<&'a OwnerNode>,
        owners: &'a Owners,
    ) -> Vec<Difference> {
        let items = self.types.items(ty);
        match self.list_kind(ty, node) {
            ListKind::Map(keys) => {
                let keyed = |walk: &Self, list: &'a [Value]| -> Option<Vec<Keyed<'a>>> {
                    list.iter()
                        .enumerate()
                        .map(|(index, item)| Some(Keyed { index, item, keys: walk.keys_of(items, &keys, item)? }))
                        .collect()
                };
                match (keyed(self, d), keyed(self, l)) {
                    (Some(d), Some(l)) => self.keyed_list(items, desired, live, &d, &l, node, owners),
                    _ => self.atomic_list(items, desired, live, d, l, node, owners),
                }
            }
            ListKind::Set if d.iter().chain(l).all(|member| !member.is_object() && !member.is_array()) => {
                self.set(items, d, l, node)
            }
            ListKind::Set | ListKind::Atomic => self.atomic_list(items, desired, live, d, l, node, owners),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "both sides as values and as lists, so that frames can borrow")]
    fn atomic_list(
        &mut self,
        items: &'a Type,
        desired: &'a Value,
        live: &'a Value,
        d: &'a [Value],
        l: &'a [Value],
        node: Option<&'a OwnerNode>,
        owners: &'a Owners,
    ) -> Vec<Difference> {
        let l = match l.split_at_checked(d.len()) {
            Some((own, more)) if self.is_appended(more) => own,
            _ => l,
        };
        if d.len() != l.len() {
            return vec![self.changed(desired, live, node)];
        }
        let mut found = self.atomically(true, desired, live, node, |walk| {
            let pairs = d.iter().zip(l).enumerate();
            pairs
                .flat_map(|(index, (d, l))| {
                    walk.at(Step::Index(index), Spot::Index(index), |walk| walk.value(items, d, l, None, owners))
                })
                .collect()
        });
        if let [whole] = found.as_mut_slice()
            && self.is_unordered()
            && whole.nature == Nature::Plain
            && self.is_permutation(items, d, l, owners)
        {
            whole.nature = Nature::Reordered;
        }
        found
    }

    /// What admission puts behind the tolerations that a pod has.
    fn is_appended(&self, items: &[Value]) -> bool {
        self.kind.group.is_empty()
            && self.kind.kind == "Pod"
            && matches!(self.steps.as_slice(), [Step::Field("spec"), Step::Field("tolerations")])
            && items.iter().all(defaults::is_default_toleration)
    }

    /// Metrics of an autoscaler: a write through an older API version puts them in another order (kubernetes/kubernetes#74099).
    fn is_unordered(&self) -> bool {
        self.kind.group == "autoscaling"
            && matches!(self.steps.as_slice(), [Step::Field("spec"), Step::Field("metrics")])
    }

    fn is_permutation(&mut self, items: &'a Type, d: &'a [Value], l: &'a [Value], owners: &'a Owners) -> bool {
        let before = self.inside.replace(Vec::new());
        let mut left: Vec<&'a Value> = l.iter().collect();
        let fits = d.iter().all(|d| {
            let place = left.iter().position(|l| {
                self.at(Step::Index(0), Spot::Index(0), |walk| walk.value(items, d, l, None, owners)).is_empty()
            });
            place.map(|place| left.remove(place)).is_some()
        });
        self.inside = before;
        fits
    }

    fn set(&mut self, items: &'a Type, d: &'a [Value], l: &'a [Value], node: Option<&'a OwnerNode>) -> Vec<Difference> {
        let mut found = Vec::new();
        for (index, member) in d.iter().enumerate() {
            let repeated = d.iter().take(index).any(|one| same(&items.shape, one, member));
            if !repeated && !l.iter().any(|one| same(&items.shape, member, one)) {
                found.push(self.at(Step::Member(member), Spot::End, |walk| walk.removed(member)));
            }
        }
        for (index, member) in l.iter().enumerate() {
            let repeated = l.iter().take(index).any(|one| one == member);
            if repeated || d.iter().any(|one| same(&items.shape, one, member)) {
                continue;
            }
            let fill = self.protection(member);
            found.push(self.at(Step::Member(member), Spot::Index(index), |walk| {
                let mut added = walk.added(member, node.and_then(|node| node.member(member)));
                added.fill = fill;
                added
            }));
        }
        found
    }

    /// A finalizer that the API server puts on every object of the kind.
    fn protection(&self, member: &Value) -> Option<Fill> {
        let of_metadata = matches!(self.steps.as_slice(), [Step::Field("metadata"), Step::Field("finalizers")]);
        (of_metadata && defaults::is_protection(&self.kind.group, &self.kind.kind, member.as_str().unwrap_or_default()))
            .then_some(Fill::Allocated)
    }

    /// The list keys of an item, sorted by name; `None` when it is no map or has none of them.
    fn keys_of(&self, items: &'a Type, keys: &[String], item: &'a Value) -> Option<Vec<(&'a str, &'a Value)>> {
        let map = item.as_object()?;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let given = map.get_key_value(key.as_str()).filter(|(_, value)| !value.is_null());
            let default = match (&items.shape, self.types.key_default(items, key)) {
                // In built-in types an empty key gets its default too.
                (Shape::Map(declared), Some(default))
                    if given.is_none_or(|(_, value)| !items.custom && is_zero(value)) =>
                {
                    declared.fields.get_key_value(key).map(|(name, _)| (name, default))
                }
                _ => None,
            };
            found.extend(default.or(given).map(|(name, value)| (name.as_str(), value)));
        }
        (!found.is_empty()).then_some(found)
    }

    #[expect(clippy::too_many_arguments, reason = "both sides as values and as lists, so that frames can borrow")]
    fn keyed_list(
        &mut self,
        items: &'a Type,
        desired: &'a Value,
        live: &'a Value,
        d: &[Keyed<'a>],
        l: &[Keyed<'a>],
        node: Option<&'a OwnerNode>,
        owners: &'a Owners,
    ) -> Vec<Difference> {
        let is_env = matches!(self.steps.last(), Some(Step::Field("env")));
        let (wanted, found) = (by_key(d), by_key(l));
        for (_, same_key) in wanted.iter().filter(|(_, same_key)| same_key.len() > 1) {
            if let Some(keys) = same_key.first().map(|item| item.keys.clone()) {
                let path = self.at(Step::Item(keys), Spot::End, |walk| walk.path());
                self.remarks.push(Remark::DuplicateItem(path));
            }
        }
        let count = |map: &BTreeMap<String, Vec<&Keyed<'a>>>, key: &str| map.get(key).map_or(0, Vec::len);
        let miscounted = wanted.keys().any(|key| {
            let (d, l) = (count(&wanted, key), count(&found, key));
            l > 0 && d != l
        });
        if miscounted && !is_env {
            return vec![self.changed(desired, live, node)];
        }

        let mut pairs: Vec<(&Keyed<'a>, &Keyed<'a>)> = Vec::new();
        let (mut lost, mut extra): (Vec<&Keyed<'a>>, Vec<&Keyed<'a>>) = (Vec::new(), Vec::new());
        for (key, d) in &wanted {
            match (found.get(key), is_env) {
                (None, _) => lost.extend(d.last()),
                // Of a variable that is set twice the last one counts.
                (Some(l), true) => pairs.extend(d.last().copied().zip(l.last().copied())),
                (Some(l), false) => pairs.extend(d.iter().copied().zip(l.iter().copied())),
            }
        }
        extra.extend(found.iter().filter(|(key, _)| !wanted.contains_key(*key)).filter_map(|(_, l)| l.last()));

        let mut differences = Vec::new();
        let renumbered = join_by_name(&mut lost, &mut extra, d, l);
        for (d, l) in renumbered {
            // The item's path is the desired one, its owners are found under the live key.
            let below = node.and_then(|node| node.item(&l.keys));
            let inner = self.at(Step::Item(d.keys.clone()), Spot::Index(l.index), |walk| {
                walk.value(items, d.item, l.item, below, owners)
            });
            // The allocated node port comes along with the renumbered port.
            differences.extend(inner.into_iter().filter(|one| one.fill != Some(Fill::NodePort)));
        }
        for (d, l) in &pairs {
            let below = node.and_then(|node| node.item(&l.keys));
            differences.extend(self.at(Step::Item(d.keys.clone()), Spot::Index(l.index), |walk| {
                let keys: Vec<&str> = d.keys.iter().map(|(key, _)| *key).collect();
                let mut inner = walk.value(items, d.item, l.item, below, owners);
                // A list key that one side leaves to its default is no difference.
                inner.retain(|one| {
                    one.path.0.len() != walk.steps.len() + 1
                        || !one.path.last_field().is_some_and(|field| keys.contains(&field))
                });
                inner
            }));
        }
        for d in lost {
            differences.push(self.at(Step::Item(d.keys.clone()), Spot::End, |walk| walk.removed(d.item)));
        }
        for l in extra {
            let below = node.and_then(|node| node.item(&l.keys));
            differences.push(
                self.at(Step::Item(l.keys.clone()), Spot::Index(l.index), |walk| walk.added_item(items, l.item, below)),
            );
        }
        if self.order_counts(d) && is_reordered(&pairs) && self.inside.is_none() {
            differences.push(Difference { nature: Nature::Order, ..self.changed(desired, live, node) });
        }
        differences
    }

    /// The order of init containers is the order they run in; a variable can use those before it.
    fn order_counts(&self, d: &[Keyed<'a>]) -> bool {
        match self.steps.last() {
            Some(Step::Field("initContainers")) => true,
            Some(Step::Field("env")) => d
                .iter()
                .any(|item| item.item.get("value").and_then(Value::as_str).is_some_and(|value| value.contains("$("))),
            _ => false,
        }
    }

    fn at<T>(&mut self, step: Step<'a>, spot: Spot<'a>, run: impl FnOnce(&mut Self) -> T) -> T {
        self.steps.push(step);
        self.spots.push(spot);
        let result = run(self);
        self.steps.pop();
        self.spots.pop();
        result
    }

    fn path(&self) -> FieldPath {
        FieldPath(
            self.steps
                .iter()
                .map(|step| match step {
                    Step::Field(key) => Segment::Field((*key).to_owned()),
                    Step::Item(keys) => {
                        Segment::Item(keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).clone())).collect())
                    }
                    Step::Member(value) => Segment::Member((*value).clone()),
                    Step::Index(index) => Segment::Index(*index),
                })
                .collect(),
        )
    }

    fn pointer(&self) -> String {
        self.spots.iter().fold(String::new(), |mut pointer, spot| {
            pointer.push('/');
            match spot {
                Spot::Key(key) => pointer.push_str(&pointer_token(key)),
                Spot::Index(index) => pointer.push_str(&index.to_string()),
                Spot::End => pointer.push('-'),
            }
            pointer
        })
    }

    fn difference(
        &self,
        change: Change,
        desired: Option<&Value>,
        live: Option<&Value>,
        holders: Vec<EntryId>,
    ) -> Difference {
        Difference {
            path: self.path(),
            pointer: self.pointer(),
            change,
            desired: desired.cloned(),
            live: live.cloned(),
            nature: Nature::Plain,
            holders,
            fill: None,
            parts: Vec::new(),
        }
    }

    fn holders(&self, node: Option<&OwnerNode>) -> Vec<EntryId> {
        match &self.inside {
            Some(holders) => holders.clone(),
            None => node.map(OwnerNode::holders).unwrap_or_default(),
        }
    }

    fn changed(&self, desired: &Value, live: &Value, node: Option<&OwnerNode>) -> Difference {
        self.difference(Change::Changed, Some(desired), Some(live), self.holders(node))
    }

    fn added(&self, live: &Value, node: Option<&OwnerNode>) -> Difference {
        self.difference(Change::Added, None, Some(live), self.holders(node))
    }

    /// Nobody holds what is gone.
    fn removed(&self, desired: &Value) -> Difference {
        self.difference(Change::Removed, Some(desired), None, Vec::new())
    }
}

/// An item of a list that is a map, with its keys.
struct Keyed<'a> {
    index: usize,
    item: &'a Value,
    keys: Vec<(&'a str, &'a Value)>,
}

fn by_key<'k, 'a>(list: &'k [Keyed<'a>]) -> BTreeMap<String, Vec<&'k Keyed<'a>>> {
    let mut map: BTreeMap<String, Vec<&Keyed<'a>>> = BTreeMap::new();
    for item in list {
        let key = item.keys.iter().map(|(key, value)| format!("{key}={value},")).collect();
        map.entry(key).or_default().push(item);
    }
    map
}

/// Takes out items whose keys differ but that share a `name` no other item has: one item each, whose key was edited.
fn join_by_name<'k, 'a>(
    lost: &mut Vec<&'k Keyed<'a>>,
    extra: &mut Vec<&'k Keyed<'a>>,
    d: &[Keyed<'a>],
    l: &[Keyed<'a>],
) -> Vec<(&'k Keyed<'a>, &'k Keyed<'a>)> {
    let name = |item: &Keyed<'a>| item.item.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let unique = |list: &[Keyed<'a>], wanted: &str| list.iter().filter(|item| name(item) == Some(wanted)).count() == 1;
    let mut joined = Vec::new();
    lost.retain(|gone| {
        let Some(wanted) = name(gone).filter(|wanted| unique(d, wanted) && unique(l, wanted)) else { return true };
        let Some(place) = extra.iter().position(|item| name(item) == Some(wanted)) else { return true };
        joined.push((*gone, extra.remove(place)));
        false
    });
    joined
}

fn is_reordered(pairs: &[(&Keyed<'_>, &Keyed<'_>)]) -> bool {
    let mut places: Vec<(usize, usize)> = pairs.iter().map(|(d, l)| (d.index, l.index)).collect();
    places.sort_unstable();
    places.windows(2).any(|pair| matches!(pair, [(_, first), (_, second)] if first > second))
}

/// The Apply managers that still own an absent field, or every leaf of it: they show that the server dropped what they applied.
fn appliers(wanted: &Value, node: Option<&OwnerNode>, owners: &Owners) -> Vec<EntryId> {
    let Some(node) = node else { return Vec::new() };
    match wanted {
        Value::Object(map) if map.values().any(|value| !value.is_null()) => {
            let leaves = map.iter().filter(|(_, value)| !value.is_null());
            leaves
                .map(|(key, value)| appliers(value, node.field(key), owners))
                .reduce(|all, one| all.into_iter().filter(|id| one.contains(id)).collect())
                .unwrap_or_default()
        }
        _ => {
            let is_apply = |id: &&EntryId| owners.entries.get(**id).is_some_and(super::owners::Entry::is_apply);
            node.whole().iter().filter(is_apply).copied().collect()
        }
    }
}

fn is_zero_throughout(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_zero_throughout),
        _ => is_zero(value),
    }
}

fn slot_type<'s>(slot: Slot<'s>) -> &'s Type {
    match slot {
        Slot::Field(ty, _) | Slot::Entry(ty, _) => ty,
        Slot::Open | Slot::Unknown => &ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compared(desired: &Value, live: &Value) -> Comparison {
        let text = |key: &str| desired.get(key).and_then(Value::as_str).unwrap();
        let kind = Gvk::new(text("apiVersion"), text("kind"));
        let document: &[u8] = match kind.group.as_str() {
            "apps" => include_bytes!("../../tests/data/openapi/apps-v1.json"),
            _ => include_bytes!("../../tests/data/openapi/core-v1.json"),
        };
        let schema = Schema::from_openapi(document).unwrap();
        compare(&kind, desired, live, Some(&schema), &Owners::of(live))
    }

    /// `change path nature`, a line each; what the server fills in by itself is left out.
    fn found(desired: &Value, live: &Value) -> Vec<String> {
        let differences = compared(desired, live).differences;
        let unexplained = differences.iter().filter(|one| one.fill.is_none());
        unexplained.map(|one| format!("{:?} {} {:?}", one.change, one.path, one.nature)).collect()
    }

    fn nothing() -> Vec<String> {
        Vec::new()
    }

    fn deployment(spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    }

    fn pod(spec: Value) -> Value {
        deployment(json!({"template": {"spec": spec}}))
    }

    fn container(fields: &Value) -> Value {
        let mut container = fields.clone();
        container["name"] = json!("web");
        pod(json!({"containers": [container]}))
    }

    #[test]
    fn an_empty_list_key_has_its_default_as_an_absent_one_has() {
        let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}});
        let live = service(json!([{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]));
        for protocol in
            [json!({"port": 53}), json!({"port": 53, "protocol": ""}), json!({"port": 53, "protocol": null})]
        {
            assert_eq!(found(&service(json!([{"port": 53, "protocol": "UDP"}, protocol])), &live), nothing());
        }
    }

    #[test]
    fn only_a_name_that_no_other_item_has_joins_two_keys() {
        let mounts = |paths: &[&str]| {
            let mounts: Vec<Value> = paths.iter().map(|path| json!({"name": "data", "mountPath": path})).collect();
            container(&json!({"volumeMounts": mounts}))
        };
        let at = |path: &str| format!(r#".spec.template.spec.containers[name="web"].volumeMounts[mountPath="{path}"]"#);
        let (removed, added) =
            (|path| format!("Removed {} Plain", at(path)), |path| format!("Added {} Plain", at(path)));
        assert_eq!(found(&mounts(&["/a"]), &mounts(&["/c"])), [format!("Changed {}.mountPath Plain", at("/a"))]);
        assert_eq!(found(&mounts(&["/a"]), &mounts(&["/c", "/d"])), [removed("/a"), added("/c"), added("/d")]);
        assert_eq!(found(&mounts(&["/a", "/b"]), &mounts(&["/c"])), [removed("/a"), removed("/b"), added("/c")]);
    }

    #[test]
    fn of_items_with_one_key_the_number_counts_but_of_variables_the_last() {
        let ports = |count: usize| container(&json!({"ports": vec![json!({"containerPort": 80}); count]}));
        let list = r#".spec.template.spec.containers[name="web"].ports"#;
        assert_eq!(found(&ports(2), &ports(2)), nothing());
        assert_eq!(found(&ports(2), &ports(1)), [format!("Changed {list} Plain")]);
        assert_eq!(found(&ports(1), &ports(2)), [format!("Changed {list} Plain")]);
        let twice = compared(&ports(2), &ports(2)).remarks;
        assert!(matches!(twice.as_slice(), [Remark::DuplicateItem(_)]), "{twice:?}");

        let env = |values: &[&str]| {
            let env: Vec<Value> = values.iter().map(|value| json!({"name": "A", "value": value})).collect();
            container(&json!({"env": env}))
        };
        assert_eq!(found(&env(&["1", "2"]), &env(&["1", "2"])), nothing());
        assert_eq!(found(&env(&["1", "2"]), &env(&["2"])), nothing());
        assert_eq!(found(&env(&["1", "2"]), &env(&["2", "1"])).len(), 1);
    }

    #[test]
    fn a_change_inside_an_atomic_value_is_no_mere_addition() {
        let with = |toleration: Value| pod(json!({"tolerations": [toleration]}));
        let desired = with(json!({"key": "a", "operator": "Exists"}));
        let more = with(json!({"key": "a", "operator": "Exists", "effect": "NoSchedule"}));
        let other = with(json!({"key": "b", "operator": "Exists", "effect": "NoSchedule"}));
        assert_eq!(found(&desired, &more), ["Changed .spec.template.spec.tolerations ExtraInside"]);
        assert_eq!(found(&desired, &other), ["Changed .spec.template.spec.tolerations Plain"]);
    }

    #[test]
    fn what_one_manager_alone_applied_throughout_may_be_dropped_by_the_server() {
        let desired = container(&json!({"securityContext": {"runAsUser": 1000, "runAsGroup": 1000}}));
        let owned = |fields: Value| json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:securityContext": fields}}}}}});
        let live = |entries: &[(&str, Value)]| {
            let entry = |(manager, fields): &(&str, Value)| json!({"manager": manager, "operation": "Apply", "fieldsV1": owned(fields.clone())});
            let mut live = container(&json!({}));
            live["metadata"]["managedFields"] = entries.iter().map(entry).collect();
            live
        };
        let path = r#".spec.template.spec.containers[name="web"].securityContext"#;
        let both = live(&[("helm", json!({"f:runAsUser": {}, "f:runAsGroup": {}}))]);
        assert_eq!(found(&desired, &both), [format!("Removed {path} NotStored")]);
        let each = live(&[("helm", json!({"f:runAsUser": {}})), ("pipeline", json!({"f:runAsGroup": {}}))]);
        assert_eq!(found(&desired, &each), [format!("Removed {path} Plain")]);
    }

    #[test]
    fn what_a_service_lost_with_its_type_is_gone_though_helm_still_owns_it() {
        let service =
            |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec});
        let port = "k:{\"port\":80,\"protocol\":\"TCP\"}";
        let fields = json!({"f:spec": {"f:externalTrafficPolicy": {}, "f:loadBalancerClass": {}, "f:ports": {port: {"f:nodePort": {}}}}});
        let lost = |kind: &str, live: &str| {
            let desired =
                service(json!({"type": kind, "externalTrafficPolicy": "Cluster", "loadBalancerClass": "example.com/a",
                "ports": [{"port": 80, "nodePort": 30080}]}));
            let mut live = service(json!({"type": live, "ports": [{"port": 80, "protocol": "TCP"}]}));
            live["metadata"]["managedFields"] = json!([{"manager": "helm", "operation": "Apply", "fieldsV1": fields}]);
            found(&desired, &live)
        };
        let gone = [
            "Removed .spec.externalTrafficPolicy Plain",
            "Removed .spec.loadBalancerClass Plain",
            r#"Removed .spec.ports[port=80,protocol="TCP"].nodePort Plain"#,
        ];
        assert_eq!(lost("LoadBalancer", "LoadBalancer"), gone, "there and back");
        let changed = "Changed .spec.type Plain".to_owned();
        assert_eq!(lost("LoadBalancer", "ExternalName"), [gone.map(str::to_owned).as_slice(), &[changed]].concat());
        // Of a type that has none of them, an upgrade dropped them itself.
        assert!(lost("ClusterIP", "ClusterIP").iter().all(|line| line.ends_with(" NotStored")));
    }

    #[test]
    fn an_unknown_field_is_pruned_and_said() {
        let comparison = compared(&pod(json!({"hostnetwork": true})), &pod(json!({})));
        assert_eq!(comparison.differences, []);
        let pruned = comparison.remarks.first().unwrap();
        assert!(matches!(pruned, Remark::Pruned(path) if path.to_string() == ".spec.template.spec.hostnetwork"));
    }

    #[test]
    fn a_null_is_an_absent_field() {
        assert_eq!(found(&deployment(json!({"replicas": null})), &deployment(json!({}))), nothing());
        assert_eq!(found(&deployment(json!({"replicas": null})), &deployment(json!({"replicas": 1}))), nothing());
        for replicas in [0, 2] {
            let live = deployment(json!({"replicas": replicas}));
            assert_eq!(found(&deployment(json!({"replicas": null})), &live), ["Added .spec.replicas Plain"]);
        }
        // Go reads a null in a map of texts as an empty one.
        let labels =
            |value: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"a": value}}});
        assert_eq!(found(&labels(Value::Null), &labels(json!(""))), nothing());
        assert_eq!(found(&labels(Value::Null), &labels(json!("b"))), ["Added .metadata.labels.a Plain"]);
    }

    #[test]
    fn what_was_put_into_an_empty_map_is_named_there() {
        let labels = |labels: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": labels}});
        assert_eq!(found(&labels(json!({})), &labels(json!({"a": "b"}))), ["Added .metadata.labels.a Plain"]);
        let nodes = |nodes: Value| pod(json!({"nodeSelector": nodes}));
        assert_eq!(
            found(&nodes(json!({})), &nodes(json!({"pool": "a"}))),
            ["Changed .spec.template.spec.nodeSelector DroppedZero"],
            "an atomic one is one value"
        );
        let set = |start: i32| json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"ordinals": {"start": start}}});
        assert_eq!(found(&set(0), &set(3)), ["Changed .spec.ordinals.start Plain"], "a zero that is stored");
        let paused = |paused: bool| deployment(json!({"paused": paused}));
        assert_eq!(found(&paused(false), &paused(true)), ["Changed .spec.paused DroppedZero"]);
    }

    #[test]
    fn members_of_a_set_are_each_for_itself() {
        let held = |by: &[&str]| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": by}});
        assert_eq!(
            found(&held(&["x", "x"]), &held(&["y"])),
            [r#"Removed .metadata.finalizers[="x"] Plain"#, r#"Added .metadata.finalizers[="y"] Plain"#]
        );
        assert_eq!(found(&held(&["x", "y"]), &held(&["y", "x"])), nothing());
    }
}
