"""A trace in Perfetto's format, read by Perfetto's own definition of it: what is wrong with it, and what it shows."""
import collections
import pathlib
import sys

from harness import skip

# Where scripts/fetch-perfetto.sh puts the definition and the parser.
FETCHED = pathlib.Path(__file__).resolve().parents[2] / "build/perfetto"


def perfetto():
    """The module with Perfetto's messages."""
    if not FETCHED.is_dir():
        skip("Perfetto's format is missing: scripts/fetch-perfetto.sh fetches it")
    if str(FETCHED) not in sys.path:
        sys.path.insert(0, str(FETCHED))
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    return perfetto_trace_pb2


def read(path):
    return perfetto().Trace.FromString(pathlib.Path(path).read_bytes())


# ---- what is wrong with it ----


def faults(trace):
    """Texts; none: nothing is wrong."""
    return [*unknown_fields(trace), *wrong_packets(trace), *wrong_tracks(trace), *wrong_events(trace), *wrong_slices(trace),
            *lone_arrows(trace), *unknown_references(trace)]


def parts_of(value):
    """The messages in a field."""
    parts = [value] if hasattr(value, "ListFields") or not hasattr(value, "MergeFrom") else value
    return [part for part in parts if hasattr(part, "ListFields")]


def messages_of(message):
    yield message
    for _, value in message.ListFields():
        for part in parts_of(value):
            yield from messages_of(part)


# Also a field of another type than the definition has, and a value that an enumeration does not have.
def unknown_fields(trace):
    perfetto()
    from google.protobuf.unknown_fields import UnknownFieldSet

    for message in messages_of(trace):
        for field in UnknownFieldSet(message):
            yield f"{message.DESCRIPTOR.name} has no field {field.field_number} of wire type {field.wire_type}"


def wrong_packets(trace):
    for number, packet in enumerate(trace.packet):
        if packet.WhichOneof("data") not in ("track_event", "track_descriptor"):
            yield f"packet {number} is neither an event nor a track: {packet.WhichOneof('data')}"
        if packet.trusted_packet_sequence_id == 0:
            yield f"packet {number} has no sequence"
        if packet.HasField("track_event") and not packet.HasField("timestamp"):
            yield f"packet {number} has an event without a time"
        # Times are in nanoseconds of the trace's own clock, because nothing says otherwise.
        for field in ("timestamp_clock_id", "trace_packet_defaults"):
            if packet.HasField(field):
                yield f"packet {number} changes how times are read: {field}"


# Perfetto drops values of a counter that is described later. The others may come in any order.
def wrong_tracks(trace):
    described = set()
    for packet in trace.packet:
        if packet.HasField("track_event") and packet.track_event.track_uuid not in described:
            yield f"an event's track is not described before it: {packet.track_event.track_uuid}"
        if not packet.HasField("track_descriptor"):
            continue
        track = packet.track_descriptor
        if track.uuid == 0 or track.uuid in described:
            yield f"a track has no number of its own: {track.uuid}"
        if track.HasField("parent_uuid") and track.parent_uuid not in described:
            yield f"a track's parent is not described before it: {track.parent_uuid}"
        if track.HasField("process") and (track.process.pid <= 0 or not track.process.process_name):
            yield f"a process has no pid, or no name: {track.process}"
        if track.HasField("thread") and (track.thread.pid <= 0 or track.thread.tid <= 0):
            yield f"a thread has no pid, or no tid: {track.thread}"
        if not track.name and not track.HasField("process") and not track.HasField("thread"):
            yield f"a track has no name: {track.uuid}"
        described.add(track.uuid)


def events_of(trace):
    """(time, event), in the order in which Perfetto reads them: by time, and those of one time in the file's order."""
    return sorted(((packet.timestamp, packet.track_event) for packet in trace.packet if packet.HasField("track_event")),
                  key=lambda one: one[0])


def tracks_of(trace):
    return {packet.track_descriptor.uuid: packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")}


def wrong_events(trace):
    kinds = perfetto().TrackEvent
    counters = {uuid for uuid, track in tracks_of(trace).items() if track.HasField("counter")}
    for _, event in events_of(trace):
        counts = event.type == kinds.TYPE_COUNTER
        if counts != (event.track_uuid in counters):
            yield f"a counter's event, or its track, is of another kind: {event}"
        if counts != (event.WhichOneof("counter_value_field") is not None):
            yield f"an event should have a value, or should not: {event}"
        if event.type in (kinds.TYPE_SLICE_BEGIN, kinds.TYPE_INSTANT) and event.WhichOneof("name_field") is None:
            yield f"an event has no name: {event}"
        if event.type == kinds.TYPE_UNSPECIFIED:
            yield f"an event has no type: {event}"


# In the file's order, which is to be that of time: so no end of a slice may be taken for the end of another one.
def wrong_slices(trace):
    kinds = perfetto().TrackEvent
    latest = collections.Counter()
    depths = collections.Counter()
    for packet in trace.packet:
        event = packet.track_event
        if event.type not in (kinds.TYPE_SLICE_BEGIN, kinds.TYPE_SLICE_END):
            continue
        track = event.track_uuid
        if packet.timestamp < latest[track]:
            yield f"slices of track {track} go back in time: to {packet.timestamp} from {latest[track]}"
        latest[track] = packet.timestamp
        depths[track] += 1 if event.type == kinds.TYPE_SLICE_BEGIN else -1
        if depths[track] < 0:
            yield f"a slice ends that did not begin: track {track} at {packet.timestamp}"
    yield from (f"{depth} slices do not end: track {track}" for track, depth in depths.items() if depth > 0)


def lone_arrows(trace):
    ends = collections.Counter(arrow for _, event in events_of(trace) for arrow in {*event.flow_ids, *event.terminating_flow_ids})
    yield from (f"an arrow has one end: {arrow}" for arrow, count in ends.items() if count < 2)


# Fields with the number of a text that is elsewhere, and where it is.
REFERENCES = {
    ("TrackEvent", "name_iid"): "event_names",
    ("TrackEvent", "category_iids"): "event_categories",
    ("DebugAnnotation", "name_iid"): "debug_annotation_names",
    ("DebugAnnotation", "string_value_iid"): "debug_annotation_string_values",
}


def unknown_references(trace):
    known = collections.defaultdict(set)  # by the sequence and the field of interned_data
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        for field, texts in packet.interned_data.ListFields():
            known[sequence, field.name] |= {text.iid for text in texts}
        for message in messages_of(packet):
            for field, value in message.ListFields():
                if not field.name.endswith(("_iid", "_iids")):
                    continue
                place = REFERENCES.get((message.DESCRIPTOR.name, field.name))
                for number in [value] if isinstance(value, int) else value:
                    if number not in known[sequence, place]:
                        yield f"{field.name} {number} is not known"


# ---- what it shows ----


class Slice:
    """Between two times, or at one."""

    def __init__(self, track, begin, event):
        self.track, self.begin, self.name = track, begin, event.name
        self.end = begin
        self.categories = list(event.categories)
        self.arrows = {*event.flow_ids}
        self.add_notes(event)

    def add_notes(self, event):
        self.notes = {note.name: getattr(note, note.WhichOneof("value")) for note in event.debug_annotations}


def slices_of(trace):
    kinds = perfetto().TrackEvent
    tracks = tracks_of(trace)
    slices = []
    opened = collections.defaultdict(list)
    for at, event in events_of(trace):
        if event.type in (kinds.TYPE_SLICE_BEGIN, kinds.TYPE_INSTANT):
            slices.append(Slice(tracks[event.track_uuid], at, event))
        if event.type == kinds.TYPE_SLICE_BEGIN:
            opened[event.track_uuid].append(slices[-1])
        if event.type == kinds.TYPE_SLICE_END:
            ended = opened[event.track_uuid].pop()
            ended.end = at
            ended.add_notes(event)
    return slices


def counters_of(trace):
    """By the name of the counter, [(time, value)]."""
    tracks = tracks_of(trace)
    counters = collections.defaultdict(list)
    for at, event in events_of(trace):
        if event.HasField("counter_value"):
            counters[tracks[event.track_uuid].name].append((at, event.counter_value))
    return counters


def processes_of(trace):
    """By the uuid of its track, (pid, name)."""
    return {uuid: (track.process.pid, track.process.process_name) for uuid, track in tracks_of(trace).items()
            if track.HasField("process")}
