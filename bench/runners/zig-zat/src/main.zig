//! The runner of zat, a Zig SDK for AT Protocol.
//!
//! Its source is the package that build.zig.zon pins, or the checkout named by WIREPROOF_ZAT.

const std = @import("std");

const commit = @import("commit.zig");
const decode = @import("decode.zig");
const mst = @import("mst.zig");
const repo = @import("repo.zig");
const work = @import("work.zig");

const Io = std.Io;
const Allocator = std.mem.Allocator;

const Request = struct {
    cmd: []const u8,
    task: []const u8 = "",
    variant: []const u8 = "",
    files: []const []const u8 = &.{},
};

const Session = struct {
    io: Io,
    /// Holds what is loaded.
    arena: std.heap.ArenaAllocator,
    loaded: ?work.Work = null,

    fn answer(self: *Session, scratch: Allocator, line: []const u8, out: *Io.Writer) !void {
        const request = try std.json.parseFromSliceLeaky(Request, scratch, line, .{ .ignore_unknown_fields = true });
        if (std.mem.eql(u8, request.cmd, "describe")) return out.writeAll(DESCRIPTION);
        if (std.mem.eql(u8, request.cmd, "load")) return self.load(request, out);
        const loaded = if (self.loaded) |*loaded| loaded else return error.NothingIsLoaded;
        if (std.mem.eql(u8, request.cmd, "prove")) return loaded.prove(out);
        if (std.mem.eql(u8, request.cmd, "pass")) return self.pass(loaded, out);
        return error.UnknownRequest;
    }

    fn load(self: *Session, request: Request, out: *Io.Writer) !void {
        self.loaded = null;
        _ = self.arena.reset(.free_all);
        const allocator = self.arena.allocator();
        const files = try allocator.alloc([]const u8, request.files.len);
        for (files, request.files) |*file, path| {
            file.* = try Io.Dir.cwd().readFileAlloc(self.io, path, allocator, .unlimited);
        }
        self.loaded = try open(allocator, request.task, request.variant, files);
        const size = self.loaded.?.size();
        try out.print("{{\"units\":{d},\"bytes\":{d}}}", .{ size.units, size.bytes });
    }

    fn pass(self: *Session, loaded: *work.Work, out: *Io.Writer) !void {
        const start = Io.Clock.awake.now(self.io);
        try loaded.pass();
        const ns = start.durationTo(Io.Clock.awake.now(self.io)).toNanoseconds();
        try out.print("{{\"ns\":{d}", .{ns});
        // One call makes all stages, so that the time is that of the first.
        if (loaded.* == .repository) try out.print(",\"stages_ns\":{{\"parse\":{d}}}", .{ns});
        try out.writeAll("}");
    }
};

fn open(allocator: Allocator, task: []const u8, variant: []const u8, files: []const []const u8) !work.Work {
    const is = struct {
        fn is(one: []const u8, other: []const u8) bool {
            return std.mem.eql(u8, one, other);
        }
    }.is;
    if (is(task, "decode")) return .{ .frames = try decode.open(allocator, variant, files) };
    if (is(task, "mst")) return mst.open(allocator, variant, files);
    if (is(task, "repo") and is(variant, "total")) return .{ .repository = try repo.open(allocator, files) };
    if (is(task, "commit") and is(variant, "full")) return .{ .commits = try commit.open(allocator, files) };
    return error.UnknownVariant;
}

const DESCRIPTION =
    \\{"engine":"zat cbor, car, mst, firehose and repo verifier on Zig's standard library","version":"
++ work.VERSION ++
    \\","language":"zig","tasks":{"decode":{
++ decode.DESCRIPTION ++
    \\},"mst":{"insert-root/ascending":[],"insert-root/shuffled":[],"lookup":[]},"repo":{"total":
++ repo.CHECKS ++
    \\},"commit":{"full":
++ commit.CHECKS ++
    \\}}}
;

pub fn main(init: std.process.Init) !void {
    const allocator = std.heap.smp_allocator;
    var session: Session = .{ .io = init.io, .arena = .init(allocator) };
    var scratch: std.heap.ArenaAllocator = .init(allocator);
    var requests: [1 << 16]u8 = undefined;
    var answers: [1 << 16]u8 = undefined;
    var stdin = Io.File.stdin().readerStreaming(init.io, &requests);
    var stdout = Io.File.stdout().writerStreaming(init.io, &answers);
    while (try stdin.interface.takeDelimiter('\n')) |line| {
        _ = scratch.reset(.retain_capacity);
        session.answer(scratch.allocator(), line, &stdout.interface) catch |fault| {
            // What was written before the fault would spoil the line.
            stdout.interface.end = 0;
            try stdout.interface.print("{{\"error\":\"{s}\"}}", .{@errorName(fault)});
        };
        try stdout.interface.writeAll("\n");
        try stdout.interface.flush();
    }
}
