#!/usr/bin/env python3
"""The checks of perfetto_trace.py find what they are for: each one in a timeline that was spoilt in this way."""
import pathlib

from harness import check, main, test
from perfetto_trace import counters_of, faults, perfetto, processes_of, read, slices_of

# Each kind of line that a recording has, and turns.
RECORDING = """\
{"xsched_record":2,"recorded":{"started":"2026-11-23T02:00:00Z","started_unix_ns":1795399200123456789,"version":"2.0.0","policy":"HPF","anonymous":false}}
{"t":0,"device":{"id":0,"platform":"CUDA","name":"GPU","level":3}}
{"t":0,"process":{"id":1,"name":"train","pid":812,"user":"ann"}}
{"t":0,"process":{"id":2,"name":"serve","pid":913,"user":"ann"}}
{"t":0,"queue":{"id":1,"process":1,"device":0,"level":3,"number":36,"hints":{"priority":0}}}
{"t":0,"queue":{"id":2,"process":2,"device":0,"level":3,"number":37,"hints":{"priority":5}}}
{"t":0,"queue":{"id":3,"process":2,"device":0,"level":3,"number":38,"hints":{"priority":5}}}
{"t":1000000,"burst":{"queue":1,"commands":5,"launched":9,"device_ns":800000,"span_ns":1000000,"waiting_ns":200000,"cut":true}}
{"t":1500000,"hold":{"queue":1,"span_ns":200000,"why":"held","by":2}}
{"t":1500000,"burst":{"queue":2,"commands":1,"launched":1,"device_ns":200000,"span_ns":200000}}
{"t":1800000,"hold":{"queue":1,"span_ns":100000,"why":"off device","by":3}}
{"t":1900000,"queue":{"id":1,"process":1,"device":0,"level":3,"number":36,"hints":{"priority":1}}}
{"t":1950000,"wait":{"queue":3,"for":2}}
{"t":2000000,"burst":{"queue":1,"commands":4,"launched":0,"device_ns":500000,"span_ns":500000,"continued":true}}
{"t":1200000,"slice":{"process":1,"device":0,"span_ns":600000,"slice_us":1}}
{"t":1100000,"turn":{"process":1,"device":0,"span_ns":700000}}
{"t":1800000,"turn":{"process":2,"device":0,"span_ns":100000}}
{"t":1000000,"memory":{"process":1,"device":0,"span_ns":400000,"used":3000,"limit":9000}}
{"t":1400000,"memory":{"process":1,"device":0,"span_ns":100000,"used":5000,"limit":9000}}
{"t":2200000,"in_flight":{"queue":1,"commands":3}}
{"t":2600000,"lost":{"records":3}}
{"t":2700000,"gone":{"queue":3}}
{"t":3000000,"end":{"why":"time"}}
"""


def timeline(place):
    recording = pathlib.Path(place.folder) / "recording.xrec"
    recording.write_text(RECORDING)
    made = recording.with_suffix(".pftrace")
    told = place.tool("trace", str(recording), "--output", str(made))
    check(told.returncode == 0, f"it is a timeline: {told.stderr}")
    return read(made)


# ---- where a timeline is spoilt ----


def event(trace, kind, described=""):
    """The first packet with an event of this type, on a track whose name has `described`."""
    tracks = {packet.track_descriptor.uuid for packet in trace.packet if described in packet.track_descriptor.name}
    wanted = perfetto().TrackEvent.Type.Value(f"TYPE_{kind}")
    return next(packet for packet in trace.packet if packet.track_event.type == wanted and packet.track_event.track_uuid in tracks)


def track(trace, kind="process"):
    """The first one of this kind."""
    return next(packet.track_descriptor for packet in trace.packet if packet.track_descriptor.HasField(kind))


def drop(trace, packet):
    trace.packet.remove(packet)


def to_end(trace, packet):
    moved = perfetto().TracePacket.FromString(packet.SerializeToString())
    trace.packet.remove(packet)
    trace.packet.append(moved)


def end_before_it_begins(trace):
    event(trace, "SLICE_END", "held").timestamp -= 300_000


def ends_in_another_order(trace):
    to_end(trace, event(trace, "SLICE_BEGIN", "held"))


def counter_described_late(trace):
    counter = track(trace, "counter")
    to_end(trace, next(packet for packet in trace.packet if packet.track_descriptor == counter))


def with_text_elsewhere(trace, known):
    """An event's name is text 7 of the interned data, which has text `known`."""
    packet = event(trace, "INSTANT")
    packet.track_event.name_iid = 7
    packet.interned_data.event_names.add(iid=known, name="somewhere else")


# Fields of the wire format that the definition does not have.
UNKNOWN = b"\xc2\xbb\x01\x01x"  # 3000, of one byte
OLD_ARROW = b"\xf8\x02\x05"  # flow_ids, as a varint
NO_TYPE = b"\x48\x63"  # an event's type 99

# What is found, and in what way the timeline was spoilt.
SPOILT = [
    ("TrackEvent has no field 3000", lambda trace: event(trace, "INSTANT").track_event.MergeFromString(UNKNOWN)),
    ("TrackEvent has no field 47 of wire type 0", lambda trace: event(trace, "INSTANT").track_event.MergeFromString(OLD_ARROW)),
    ("TrackEvent has no field 9 of wire type 0", lambda trace: event(trace, "INSTANT").track_event.MergeFromString(NO_TYPE)),
    ("DebugAnnotation has no field 3000",
     lambda trace: event(trace, "SLICE_END", "queue 36 on").track_event.debug_annotations[0].MergeFromString(UNKNOWN)),
    ("ProcessDescriptor has no field 3000", lambda trace: track(trace).process.MergeFromString(UNKNOWN)),
    ("Trace has no field 3000", lambda trace: trace.MergeFromString(UNKNOWN)),
    ("is neither an event nor a track: None", lambda trace: event(trace, "INSTANT").ClearField("track_event")),
    ("is neither an event nor a track: clock_snapshot", lambda trace: trace.packet.add().clock_snapshot.SetInParent()),
    ("has no sequence", lambda trace: trace.packet[-1].ClearField("trusted_packet_sequence_id")),
    ("has an event without a time", lambda trace: event(trace, "INSTANT").ClearField("timestamp")),
    ("changes how times are read: timestamp_clock_id", lambda trace: setattr(event(trace, "INSTANT"), "timestamp_clock_id", 64)),
    ("changes how times are read: trace_packet_defaults",
     lambda trace: setattr(trace.packet[0].trace_packet_defaults, "timestamp_clock_id", 6)),
    ("an event's track is not described before it: 999", lambda trace: setattr(event(trace, "INSTANT").track_event, "track_uuid", 999)),
    ("an event's track is not described before it: 9", counter_described_late),
    ("parent is not described before it: 999", lambda trace: setattr(track(trace, "counter"), "parent_uuid", 999)),
    ("a track has no number of its own: 1", lambda trace: setattr(trace.packet[1].track_descriptor, "uuid", 1)),
    ("a process has no pid, or no name", lambda trace: track(trace).process.ClearField("pid")),
    ("a process has no pid, or no name", lambda trace: track(trace).process.ClearField("process_name")),
    ("a thread has no pid, or no tid", lambda trace: setattr(track(trace).thread, "pid", 812)),
    ("a thread has no pid, or no tid", lambda trace: setattr(track(trace).thread, "tid", 812)),
    ("a track has no name", lambda trace: track(trace, "counter").ClearField("name")),
    ("a counter's event, or its track, is of another kind", lambda trace: track(trace, "counter").ClearField("counter")),
    ("a counter's event, or its track, is of another kind",
     lambda trace: setattr(event(trace, "INSTANT").track_event, "track_uuid", track(trace, "counter").uuid)),
    ("an event should have a value, or should not", lambda trace: event(trace, "COUNTER").track_event.ClearField("counter_value")),
    ("an event should have a value, or should not", lambda trace: setattr(event(trace, "INSTANT").track_event, "counter_value", 5)),
    ("an event has no name", lambda trace: event(trace, "SLICE_BEGIN").track_event.ClearField("name")),
    ("an event has no name", lambda trace: event(trace, "INSTANT").track_event.ClearField("name")),
    ("an event has no type", lambda trace: event(trace, "INSTANT").track_event.ClearField("type")),
    ("go back in time", end_before_it_begins),
    ("go back in time", ends_in_another_order),
    ("a slice ends that did not begin", lambda trace: drop(trace, event(trace, "SLICE_BEGIN", "held"))),
    ("1 slices do not end", lambda trace: drop(trace, event(trace, "SLICE_END", "held"))),
    ("an arrow has one end", lambda trace: event(trace, "SLICE_BEGIN", "held").track_event.ClearField("flow_ids")),
    ("an arrow has one end: 77", lambda trace: event(trace, "INSTANT").track_event.flow_ids.append(77)),
    ("name_iid 7 is not known", lambda trace: with_text_elsewhere(trace, 8)),
]


@test
def each_check_finds_a_timeline_that_is_spoilt_in_its_way(place):
    good = timeline(place)
    check(not faults(good), f"nothing is wrong: {faults(good)}")
    for expected, spoil in SPOILT:
        spoilt = perfetto().Trace.FromString(good.SerializeToString())
        spoil(spoilt)
        # As it is read from a file.
        found = faults(perfetto().Trace.FromString(spoilt.SerializeToString()))
        check(any(expected in fault for fault in found), f"it is found: {expected}; found: {found}")


@test
def what_was_recorded_beside_the_requests_is_shown_on_tracks_of_the_process_and_of_the_device(place):
    shown = timeline(place)
    by_track = {}
    for each in slices_of(shown):
        by_track.setdefault(each.track.name, []).append((each.begin, each.end, each.name))
    check(by_track["time slice on GPU"] == [(1_200_000, 1_800_000, "1 µs")], f"the time slice: {by_track}")
    check(by_track["GPU: turns"] == [(1_100_000, 1_800_000, "train (812)"), (1_800_000, 1_900_000, "serve (913)")], f"the turns: {by_track}")
    counters = counters_of(shown)
    check(counters["memory of GPU"] == [(1_000_000, 3000), (1_400_000, 5000), (1_500_000, 0)], f"the memory: {counters}")
    check(counters["limit of memory of GPU"] == [(1_000_000, 9000), (1_400_000, 9000), (1_500_000, 0)], f"its limit: {counters}")
    check((2_200_000, 3) in counters["queue 36: commands in flight"], f"the commands in flight: {counters}")
    memory = next(packet.track_descriptor for packet in shown.packet if packet.track_descriptor.name == "memory of GPU")
    check(memory.counter.unit == perfetto().CounterDescriptor.UNIT_SIZE_BYTES, "memory is in bytes")
    check(processes_of(shown)[memory.parent_uuid] == (812, "train"), "it is the process's")


@test
def texts_that_are_elsewhere_are_found_there(place):
    elsewhere = timeline(place)
    with_text_elsewhere(elsewhere, 7)
    check(not faults(elsewhere), f"nothing is wrong: {faults(elsewhere)}")


if __name__ == "__main__":
    main(__doc__)
