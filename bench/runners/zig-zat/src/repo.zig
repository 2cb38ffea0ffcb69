//! Repositories: `verifyCommitCar` with a complete repository required, as zat's `verifyRepo` calls it after the download.

const std = @import("std");
const zat = @import("zat");

const work = @import("work.zig");

pub const Repository = struct {
    archive: []const u8,
    did: []const u8,
    key: PublicKey,

    pub fn size(self: *Repository) work.Size {
        return .{ .units = 1, .bytes = self.archive.len };
    }

    pub fn prove(self: *Repository, out: *std.Io.Writer) !void {
        var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
        defer arena.deinit();
        const verified = try self.verify(arena.allocator());
        try out.print(
            "{{\"counts\":{{\"repositories\":1,\"valid\":1,\"records\":{d}}}}}",
            .{verified.record_count},
        );
    }

    pub fn pass(self: *Repository) !void {
        var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
        defer arena.deinit();
        std.mem.doNotOptimizeAway(try self.verify(arena.allocator()));
    }

    fn verify(self: *Repository, allocator: std.mem.Allocator) !zat.CommitVerifyResult {
        return zat.verifyCommitCar(allocator, self.archive, self.key, .{
            .expected_did = self.did,
            .require_complete_repo = true,
            .max_car_size = self.archive.len,
            .max_blocks = self.archive.len,
        });
    }
};

pub const PublicKey = zat.multicodec.PublicKey;

/// Parses a `did:key`.
pub fn parseKey(allocator: std.mem.Allocator, text: []const u8) !PublicKey {
    const prefix = "did:key:";
    if (!std.mem.startsWith(u8, text, prefix)) return error.NotADidKey;
    const bytes = try zat.multibase.decode(allocator, text[prefix.len..]);
    return zat.multicodec.parsePublicKey(bytes);
}

const Owner = struct { did: []const u8, signing_key: []const u8 };

pub fn open(allocator: std.mem.Allocator, files: []const []const u8) !Repository {
    if (files.len != 2) return error.NotAnArchiveAndItsOwner;
    const owner = try std.json.parseFromSliceLeaky(Owner, allocator, files[1], .{ .ignore_unknown_fields = true });
    return .{ .archive = files[0], .did = owner.did, .key = try parseKey(allocator, owner.signing_key) };
}

/// Nodes: neither the order of keys nor the length of prefixes is checked.
pub const CHECKS =
    \\["cid-sha256","low-s","mst-layer","complete"]
;
