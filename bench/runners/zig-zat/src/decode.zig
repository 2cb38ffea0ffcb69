//! Frames: header and payload, the archive, and every block, into the values of zat's codec, which borrow from the frame.
//! An arena keeps its memory from frame to frame, as zat's own benchmark does, or is new for each.

const std = @import("std");
const zat = @import("zat");

const work = @import("work.zig");

const Value = zat.cbor.Value;

pub const Frames = struct {
    frames: []const []const u8,
    verifies: bool,
    keeps_arena: bool,

    pub fn size(self: *Frames) work.Size {
        return .of(self.frames);
    }

    pub fn prove(self: *Frames, out: *std.Io.Writer) !void {
        var total: Counts = .{};
        var errors: usize = 0;
        var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
        defer arena.deinit();
        for (self.frames) |frame| {
            _ = arena.reset(.retain_capacity);
            var counts: Counts = .{};
            if (self.decode(arena.allocator(), frame, &counts)) total.add(counts) else |_| errors += 1;
        }
        try out.print("{{\"counts\":{{\"frames\":{d},\"errors\":{d}", .{ self.frames.len, errors });
        inline for (std.meta.fields(Counts)) |field| {
            try out.print(",\"" ++ field.name ++ "\":{d}", .{@field(total, field.name)});
        }
        try out.writeAll("}}");
    }

    pub fn pass(self: *Frames) !void {
        var kept: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
        defer kept.deinit();
        for (self.frames) |frame| {
            if (self.keeps_arena) {
                _ = kept.reset(.retain_capacity);
                self.decode(kept.allocator(), frame, null) catch {};
            } else {
                var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
                defer arena.deinit();
                self.decode(arena.allocator(), frame, null) catch {};
            }
        }
    }

    fn decode(self: *Frames, allocator: std.mem.Allocator, frame: []const u8, counts: ?*Counts) !void {
        const header = try zat.cbor.decode(allocator, frame);
        const payload = try zat.cbor.decodeAll(allocator, frame[header.consumed..]);
        const kind = header.value.getString("t") orelse "";
        if (!std.mem.eql(u8, kind, "#commit") and !std.mem.eql(u8, kind, "#sync")) {
            std.mem.doNotOptimizeAway(payload);
            return;
        }
        const archive = payload.getBytes("blocks") orelse return error.NoBlocks;
        const car = try zat.car.readWithOptions(allocator, archive, .{ .verify_block_hashes = self.verifies });
        for (car.blocks) |block| {
            if (counts) |sum| sum.blocks += 1;
            if ((zat.cbor.Cid{ .raw = block.cid_raw }).codec() != 0x71) continue;
            const value = try zat.cbor.decodeAll(allocator, block.data);
            std.mem.doNotOptimizeAway(value);
            if (counts) |sum| sum.count(value);
        }
    }
};

const Counts = struct {
    blocks: u64 = 0,
    maps: u64 = 0,
    map_entries: u64 = 0,
    arrays: u64 = 0,
    array_items: u64 = 0,
    text_bytes: u64 = 0,
    byte_string_bytes: u64 = 0,
    links: u64 = 0,
    integers: u64 = 0,
    floats: u64 = 0,
    booleans: u64 = 0,
    nulls: u64 = 0,

    fn add(self: *Counts, other: Counts) void {
        inline for (std.meta.fields(Counts)) |field| @field(self, field.name) += @field(other, field.name);
    }

    fn count(self: *Counts, value: Value) void {
        switch (value) {
            .map => |entries| {
                self.maps += 1;
                self.map_entries += entries.len;
                for (entries) |entry| {
                    self.text_bytes += entry.key.len;
                    self.count(entry.value);
                }
            },
            .array => |items| {
                self.arrays += 1;
                self.array_items += items.len;
                for (items) |item| self.count(item);
            },
            .text => |text| self.text_bytes += text.len,
            .bytes => |bytes| self.byte_string_bytes += bytes.len,
            .cid => self.links += 1,
            else => self.countScalar(@tagName(value)),
        }
    }

    /// Counts a value by the name of its kind, because versions of zat differ in whether they have floats.
    fn countScalar(self: *Counts, kind: []const u8) void {
        const kinds = .{
            .{ "unsigned", "integers" },
            .{ "negative", "integers" },
            .{ "boolean", "booleans" },
            .{ "null", "nulls" },
            .{ "float", "floats" },
        };
        inline for (kinds) |known| {
            if (std.mem.eql(u8, kind, known[0])) @field(self, known[1]) += 1;
        }
    }
};

pub fn open(allocator: std.mem.Allocator, variant: []const u8, files: []const []const u8) !Frames {
    if (files.len != 1) return error.NotOneFileOfFrames;
    inline for (VARIANTS) |known| {
        if (std.mem.eql(u8, variant, known.name)) return .{
            .frames = try work.splitFrames(allocator, files[0]),
            .verifies = known.verifies,
            .keeps_arena = known.keeps_arena,
        };
    }
    return error.UnknownVariant;
}

const Variant = struct { name: []const u8, verifies: bool, keeps_arena: bool };

const VARIANTS = [_]Variant{
    .{ .name = "verified/arena-reuse", .verifies = true, .keeps_arena = true },
    .{ .name = "verified/alloc-per-frame", .verifies = true, .keeps_arena = false },
    .{ .name = "unverified/arena-reuse", .verifies = false, .keeps_arena = true },
    .{ .name = "unverified/alloc-per-frame", .verifies = false, .keeps_arena = false },
};

/// The variants with their checks, as JSON without braces.
pub const DESCRIPTION = description: {
    var text: []const u8 = "";
    for (VARIANTS, 0..) |variant, index| {
        const hash = if (variant.verifies) "\"cid-sha256\"," else "";
        text = text ++ (if (index == 0) "" else ",") ++ "\"" ++ variant.name ++ "\":[" ++ hash ++ CHECKS ++ "]";
    }
    break :description text;
};

const CHECKS =
    \\"key-order","duplicate-keys","minimal-heads","utf8","indefinite-lengths","float-canonical","only-tag-42","trailing-bytes","depth-bound"
;
