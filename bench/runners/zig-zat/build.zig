//! Builds the runner with zat from its package, or from the checkout that `--fork` names.

const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const zat = b.dependency("zat", .{ .target = target, .optimize = optimize });
    const runner = b.addExecutable(.{
        .name = "runner",
        .root_module = b.createModule(.{
            .root_source_file = b.path("src/main.zig"),
            .target = target,
            .optimize = optimize,
            .imports = &.{.{ .name = "zat", .module = zat.module("zat") }},
        }),
    });
    b.installArtifact(runner);
}
