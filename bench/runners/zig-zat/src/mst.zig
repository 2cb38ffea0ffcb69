//! Trees: `Mst.putBorrowed`, which keeps the given keys without a copy, the root, and `Mst.get`. All memory of a pass is that
//! of one arena.

const std = @import("std");
const zat = @import("zat");

const work = @import("work.zig");

const Cid = zat.cbor.Cid;
const Mst = zat.mst.Mst;

const Records = struct {
    keys: []const []const u8,
    values: []const Cid,

    fn size(self: Records) work.Size {
        const keys: work.Size = .of(self.keys);
        return .{ .units = keys.units, .bytes = keys.bytes + CID_LEN * keys.units };
    }

    fn pick(self: Records, allocator: std.mem.Allocator, chosen: []const u32) !Records {
        const keys = try allocator.alloc([]const u8, chosen.len);
        const values = try allocator.alloc(Cid, chosen.len);
        for (chosen, keys, values) |index, *key, *value| {
            key.* = self.keys[index];
            value.* = self.values[index];
        }
        return .{ .keys = keys, .values = values };
    }

    fn insertInto(self: Records, tree: *Mst) !void {
        for (self.keys, self.values) |key, value| try tree.putBorrowed(key, value);
    }
};

pub const Tree = struct {
    records: Records,

    pub fn size(self: *Tree) work.Size {
        return self.records.size();
    }

    pub fn prove(self: *Tree, out: *std.Io.Writer) !void {
        var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
        defer arena.deinit();
        var tree = Mst.init(arena.allocator());
        try self.records.insertInto(&tree);
        try out.print("{{\"counts\":{{\"records\":{d},\"root\":\"", .{self.records.keys.len});
        try work.writeCid(out, (try tree.rootCid()).raw);
        try out.writeAll("\"}}");
    }

    pub fn pass(self: *Tree) !void {
        var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
        defer arena.deinit();
        var tree = Mst.init(arena.allocator());
        try self.records.insertInto(&tree);
        std.mem.doNotOptimizeAway(try tree.rootCid());
    }
};

pub const Lookups = struct {
    tree: Mst,
    asked: Records,

    pub fn size(self: *Lookups) work.Size {
        return self.asked.size();
    }

    pub fn prove(self: *Lookups, out: *std.Io.Writer) !void {
        var found: usize = 0;
        var checksum: u32 = 0;
        for (self.asked.keys) |key| {
            const cid = self.tree.get(key) orelse continue;
            found += 1;
            checksum +%= std.mem.readInt(u32, cid.raw[4..8], .big);
        }
        try out.print(
            "{{\"counts\":{{\"lookups\":{d},\"found\":{d},\"lookup_checksum\":{d}}}}}",
            .{ self.asked.keys.len, found, checksum },
        );
    }

    pub fn pass(self: *Lookups) !void {
        for (self.asked.keys) |key| std.mem.doNotOptimizeAway(self.tree.get(key));
    }
};

pub fn open(allocator: std.mem.Allocator, variant: []const u8, files: []const []const u8) !work.Work {
    if (files.len != 1) return error.NotOneFileOfRecords;
    const file = try File.split(allocator, files[0]);
    if (std.mem.eql(u8, variant, "insert-root/ascending")) return .{ .tree = .{ .records = file.records } };
    if (std.mem.eql(u8, variant, "insert-root/shuffled")) {
        return .{ .tree = .{ .records = try file.records.pick(allocator, file.shuffled) } };
    }
    if (!std.mem.eql(u8, variant, "lookup")) return error.UnknownVariant;
    var tree = Mst.init(allocator);
    try file.records.insertInto(&tree);
    return .{ .lookups = .{ .tree = tree, .asked = try file.copies(allocator) } };
}

const File = struct {
    records: Records,
    shuffled: []const u32,
    asked: []const u32,

    /// Splits [u32 BE n], then [u16 BE length][key][CID] for each; the shuffled order; the records to look up.
    fn split(allocator: std.mem.Allocator, file: []const u8) !File {
        var reader: work.Reader = .{ .rest = file };
        const count = try reader.int(u32);
        if (count > file.len) return error.FileIsTooShort;
        const keys = try allocator.alloc([]const u8, count);
        const values = try allocator.alloc(Cid, count);
        for (keys, values) |*key, *value| {
            key.* = try reader.take(try reader.int(u16));
            value.* = .{ .raw = try reader.take(CID_LEN) };
        }
        const shuffled = try indices(allocator, &reader, count);
        const asked = try indices(allocator, &reader, count);
        try reader.end();
        return .{ .records = .{ .keys = keys, .values = values }, .shuffled = shuffled, .asked = asked };
    }

    /// The records to look up, with copies of the keys: zat takes keys at one address for equal without reading them.
    fn copies(self: File, allocator: std.mem.Allocator) !Records {
        const own = try allocator.alloc([]const u8, self.records.keys.len);
        for (own, self.records.keys) |*copy, key| copy.* = try allocator.dupe(u8, key);
        const records: Records = .{ .keys = own, .values = self.records.values };
        return records.pick(allocator, self.asked);
    }
};

fn indices(allocator: std.mem.Allocator, reader: *work.Reader, bound: u32) ![]const u32 {
    const count = try reader.int(u32);
    if (count > reader.rest.len / 4) return error.FileIsTooShort;
    const all = try allocator.alloc(u32, count);
    for (all) |*index| {
        index.* = try reader.int(u32);
        if (index.* >= bound) return error.IndexOfNoRecord;
    }
    return all;
}

const CID_LEN = 36;
