package main

import (
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// A preset is what distinguishes a maker's brokers for somebody who reads offsets.
type preset struct {
	newest *kversion.Versions
	// oldest has only what is not 0.
	oldest map[kmsg.Key]int16
	// offsetsPartitions is 0 where __consumer_offsets is hidden. Its leaders do not coordinate the groups that Kafka's
	// hash places there: kfake has a hash of its own, as Redpanda has.
	offsetsPartitions int
	// forgetsStopped: a group that has no members is not listed, although its commits are kept.
	forgetsStopped bool
	// describable: nothing is listed, and FindCoordinator refuses the groups whose names do not begin so, as where ACLs
	// name single groups.
	describable string
	// agents: every broker serves every partition and every group, and each Metadata names other leaders.
	agents bool
	// oneAddress: as agents, and all of them share the address of the first.
	oneAddress bool
}

// The versions are those that a broker's ApiVersions response was seen to contain, or its source to implement; what no
// source says is as in the release of Apache Kafka that comes closest. docs/versions.md has them with their sources.
var presets = map[string]preset{
	"kafka-1.1": {newest: kversion.V1_1_0()},
	"kafka-2.4": {newest: kversion.V2_4_0()},
	"kafka-2.8": {newest: kversion.V2_8_0()},
	"redpanda-24.3": {
		newest: limited(kversion.V2_8_0(), map[kmsg.Key]int16{
			kmsg.Produce: 7, kmsg.Fetch: 11, kmsg.ListOffsets: 4, kmsg.Metadata: 8, kmsg.OffsetFetch: 7,
			kmsg.FindCoordinator: 3, kmsg.ListGroups: 4, kmsg.DescribeGroups: 5, kmsg.DescribeCluster: -1,
		}),
		oldest:            map[kmsg.Key]int16{kmsg.OffsetFetch: 1},
		offsetsPartitions: 16,
	},
	"redpanda-acls": {newest: kversion.V3_0_0(), offsetsPartitions: 16, describable: "billing-"},
	"redpanda-25.3": {
		newest: limited(kversion.V3_0_0(), map[kmsg.Key]int16{
			kmsg.ListOffsets: 6, kmsg.Metadata: 11, kmsg.OffsetFetch: 8, kmsg.FindCoordinator: 4, kmsg.ListGroups: 4,
			kmsg.DescribeGroups: 5,
		}),
		oldest:            map[kmsg.Key]int16{kmsg.OffsetFetch: 1},
		offsetsPartitions: 16,
	},
	"event-hubs": {
		newest:         limited(kversion.V3_6_0(), map[kmsg.Key]int16{kmsg.Metadata: 9}),
		forgetsStopped: true,
	},
	"msk-serverless": {
		newest: limited(kversion.V2_8_0(), map[kmsg.Key]int16{
			kmsg.ListOffsets: 6, kmsg.Metadata: 11, kmsg.OffsetFetch: 7, kmsg.FindCoordinator: 3, kmsg.ListGroups: 4,
			kmsg.DescribeGroups: 5,
		}),
		oldest: map[kmsg.Key]int16{
			kmsg.Produce: 7, kmsg.Fetch: 10, kmsg.ListOffsets: 5, kmsg.Metadata: 7, kmsg.OffsetCommit: 6,
			kmsg.OffsetFetch: 5, kmsg.FindCoordinator: 2, kmsg.JoinGroup: 4, kmsg.Heartbeat: 2, kmsg.LeaveGroup: 2,
			kmsg.SyncGroup: 2, kmsg.DescribeGroups: 2, kmsg.ListGroups: 2,
		},
	},
	"agents":      {newest: kversion.V3_9_0(), agents: true},
	"one-address": {newest: kversion.V3_9_0(), agents: true, oneAddress: true},
}

// limited changes the newest version of some requests; -1 removes one.
func limited(versions *kversion.Versions, newest map[kmsg.Key]int16) *kversion.Versions {
	for key, version := range newest {
		versions.SetMaxKeyVersion(int16(key), version)
	}
	return versions
}
