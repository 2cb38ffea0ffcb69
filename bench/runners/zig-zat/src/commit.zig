//! Commit frames: `firehose.decodeFrame`, then `verifyCommitDiff`, and around it what its documentation leaves to the
//! caller: did, rev and CID of the event against those of the commit, and the state of the account.

const std = @import("std");
const zat = @import("zat");

const repo = @import("repo.zig");
const work = @import("work.zig");

pub const Commits = struct {
    frames: []const []const u8,
    accounts: std.StringHashMapUnmanaged(Account),
    arena: std.heap.ArenaAllocator,

    pub fn size(self: *Commits) work.Size {
        return .of(self.frames);
    }

    pub fn prove(self: *Commits, out: *std.Io.Writer) !void {
        var counts: Counts = .{};
        self.judgeAll(&counts);
        try out.print("{{\"counts\":{{\"frames\":{d}", .{self.frames.len});
        inline for (std.meta.fields(Counts)) |field| {
            try out.print(",\"" ++ field.name ++ "\":{d}", .{@field(counts, field.name)});
        }
        try out.writeAll("}}");
    }

    pub fn pass(self: *Commits) !void {
        var counts: Counts = .{};
        self.judgeAll(&counts);
        std.mem.doNotOptimizeAway(counts);
    }

    fn judgeAll(self: *Commits, counts: *Counts) void {
        var states = self.accounts.valueIterator();
        while (states.next()) |account| account.rev_len = 0;
        for (self.frames) |frame| {
            _ = self.arena.reset(.retain_capacity);
            self.judge(frame, counts);
        }
    }

    fn judge(self: *Commits, frame: []const u8, counts: *Counts) void {
        const allocator = self.arena.allocator();
        const event = zat.firehose.decodeFrame(allocator, frame) catch {
            // A commit that zat cannot decode is one that it refuses.
            if (isCommit(allocator, frame)) {
                counts.commits += 1;
                counts.refused += 1;
            }
            return;
        };
        switch (event) {
            .commit => |commit| {
                counts.commits += 1;
                const account = self.accounts.getPtr(commit.repo);
                const is_first = if (account) |known| known.rev_len == 0 else false;
                if (self.verify(allocator, commit)) {
                    if (is_first) counts.first_sighting += 1 else counts.accepted += 1;
                    counts.ops += commit.ops.len;
                } else |_| counts.refused += 1;
            },
            .sync => |sync| self.synchronize(allocator, sync) catch {},
            else => {},
        }
    }

    fn verify(self: *Commits, allocator: std.mem.Allocator, event: zat.firehose.CommitEvent) !void {
        const account = self.accounts.getPtr(event.repo) orelse return error.UnknownAccount;
        if (!account.isBefore(event.rev)) return error.NotNewer;
        const previous: ?[]const u8 = if (event.prev_data) |cid| cid.raw else null;
        if (account.rev_len > 0) {
            const stated = previous orelse return error.NoPrevData;
            if (!std.mem.eql(u8, stated, &account.data)) return error.Desynchronized;
        }
        const ops = try event.toMstOperations(allocator);
        const result = try zat.verifyCommitDiff(allocator, event.blocks, ops, previous, account.key, .{
            .expected_did = event.repo,
            .skip_inversion = previous == null,
        });
        const commit = event.commit orelse return error.NoCommit;
        if (!std.mem.eql(u8, result.commit_rev, event.rev)) return error.OtherRev;
        if (!std.mem.eql(u8, result.commit_cid, commit.raw)) return error.OtherCommit;
        try account.advance(result.commit_rev, result.data_cid);
    }

    fn synchronize(self: *Commits, allocator: std.mem.Allocator, event: zat.firehose.SyncEvent) !void {
        const account = self.accounts.getPtr(event.did) orelse return error.UnknownAccount;
        if (!account.isBefore(event.rev)) return error.NotNewer;
        const result = try zat.verifyCommitDiff(allocator, event.blocks, &.{}, null, account.key, .{
            .expected_did = event.did,
            .skip_inversion = true,
        });
        if (!std.mem.eql(u8, result.commit_rev, event.rev)) return error.OtherRev;
        try account.advance(result.commit_rev, result.data_cid);
    }
};

const Counts = struct { commits: u64 = 0, accepted: u64 = 0, first_sighting: u64 = 0, refused: u64 = 0, ops: u64 = 0 };

/// An account with the state of its newest accepted commit.
const Account = struct {
    key: repo.PublicKey,
    rev: [13]u8 = undefined,
    /// 0 before the first commit.
    rev_len: usize = 0,
    data: [36]u8 = undefined,

    fn isBefore(self: Account, rev: []const u8) bool {
        return std.mem.order(u8, self.rev[0..self.rev_len], rev) == .lt;
    }

    fn advance(self: *Account, rev: []const u8, data: []const u8) !void {
        if (rev.len != self.rev.len or data.len != self.data.len) return error.OddState;
        @memcpy(&self.rev, rev);
        @memcpy(&self.data, data);
        self.rev_len = rev.len;
    }
};

fn isCommit(allocator: std.mem.Allocator, frame: []const u8) bool {
    const header = zat.cbor.decode(allocator, frame) catch return false;
    return std.mem.eql(u8, header.value.getString("t") orelse "", "#commit");
}

pub fn open(allocator: std.mem.Allocator, files: []const []const u8) !Commits {
    if (files.len != 2) return error.NotFramesAndAccounts;
    const spelled = try std.json.parseFromSliceLeaky(std.json.ArrayHashMap([]const u8), allocator, files[1], .{});
    var accounts: std.StringHashMapUnmanaged(Account) = .empty;
    var entries = spelled.map.iterator();
    while (entries.next()) |entry| {
        const key = try repo.parseKey(allocator, entry.value_ptr.*);
        try accounts.put(allocator, entry.key_ptr.*, .{ .key = key });
    }
    return .{
        .frames = try work.splitFrames(allocator, files[0]),
        .accounts = accounts,
        .arena = .init(std.heap.smp_allocator),
    };
}

pub const CHECKS =
    \\["cid-sha256","low-s","event-fields","inversion"]
;
