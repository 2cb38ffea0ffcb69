//! The work of the tasks, and what they share.

const std = @import("std");

const commit = @import("commit.zig");
const decode = @import("decode.zig");
const mst = @import("mst.zig");
const repo = @import("repo.zig");

/// The version that build.zig.zon pins.
pub const VERSION = "0.4.5";

/// What is loaded.
pub const Work = union(enum) {
    frames: decode.Frames,
    tree: mst.Tree,
    lookups: mst.Lookups,
    repository: repo.Repository,
    commits: commit.Commits,

    pub fn size(self: *Work) Size {
        return switch (self.*) {
            inline else => |*work| work.size(),
        };
    }

    pub fn prove(self: *Work, out: *std.Io.Writer) !void {
        switch (self.*) {
            inline else => |*work| try work.prove(out),
        }
    }

    pub fn pass(self: *Work) !void {
        switch (self.*) {
            inline else => |*work| try work.pass(),
        }
    }
};

pub const Size = struct {
    units: usize,
    bytes: usize,

    pub fn of(units: []const []const u8) Size {
        var bytes: usize = 0;
        for (units) |unit| bytes += unit.len;
        return .{ .units = units.len, .bytes = bytes };
    }
};

/// Reads a file from its start.
pub const Reader = struct {
    rest: []const u8,

    pub fn take(self: *Reader, len: usize) ![]const u8 {
        if (len > self.rest.len) return error.FileIsTooShort;
        defer self.rest = self.rest[len..];
        return self.rest[0..len];
    }

    pub fn int(self: *Reader, T: type) !T {
        return std.mem.readInt(T, (try self.take(@sizeOf(T)))[0..@sizeOf(T)], .big);
    }

    pub fn end(self: Reader) !void {
        if (self.rest.len != 0) return error.FileIsTooLong;
    }
};

/// Splits [u32 BE count], then [u32 BE length][frame] for each.
pub fn splitFrames(allocator: std.mem.Allocator, file: []const u8) ![]const []const u8 {
    var reader: Reader = .{ .rest = file };
    const count = try reader.int(u32);
    if (count > file.len) return error.FileIsTooShort;
    const frames = try allocator.alloc([]const u8, count);
    for (frames) |*frame| frame.* = try reader.take(try reader.int(u32));
    try reader.end();
    return frames;
}

/// The text of a CID in base32.
pub fn writeCid(out: *std.Io.Writer, cid: []const u8) !void {
    const digits = "abcdefghijklmnopqrstuvwxyz234567";
    try out.writeByte('b');
    var bits: u16 = 0;
    var left: u4 = 0;
    for (cid) |byte| {
        bits = (bits << 8) | byte;
        left += 8;
        while (left >= 5) : (left -= 5) try out.writeByte(digits[(bits >> (left - 5)) & 31]);
        bits &= (@as(u16, 1) << left) - 1;
    }
    if (left > 0) try out.writeByte(digits[(bits << (5 - left)) & 31]);
}
