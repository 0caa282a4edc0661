package main

import (
	"math/rand/v2"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// change makes a response of kfake one of the maker; false if it is one already.
func (d *door) change(request kmsg.Request, response kmsg.Response, throttle int32) bool {
	isChanged := false
	if response, ok := response.(kmsg.SetThrottleResponse); ok && throttle > 0 {
		response.SetThrottle(throttle)
		isChanged = true
	}
	switch response := response.(type) {
	case *kmsg.ApiVersionsResponse:
		return d.limit(response) || isChanged
	case *kmsg.OffsetFetchResponse:
		return knowEveryGroup(request.(*kmsg.OffsetFetchRequest), response) || isChanged
	case *kmsg.MetadataResponse:
		return d.cluster.lead(response) || isChanged
	case *kmsg.FindCoordinatorResponse:
		isRefused := d.cluster.refuse(request.(*kmsg.FindCoordinatorRequest), response)
		return d.cluster.coordinate(response) || isRefused || isChanged
	}
	return isChanged
}

// limit removes versions that kfake knows, but that this broker does not offer. An error comes in version 0, whichever
// version was asked for, so it must not be encoded again.
func (d *door) limit(response *kmsg.ApiVersionsResponse) bool {
	if response.ErrorCode != 0 {
		return false
	}
	offered := response.ApiKeys[:0]
	for _, api := range response.ApiKeys {
		newest, ok := d.newest(api.ApiKey)
		if !ok {
			continue
		}
		api.MinVersion = max(api.MinVersion, d.cluster.preset.oldest[kmsg.Key(api.ApiKey)])
		api.MaxVersion = min(api.MaxVersion, newest)
		offered = append(offered, api)
	}
	response.ApiKeys = offered
	return true
}

// knowEveryGroup: a broker answers for a group that does not exist as for one without commits; kfake refuses it.
func knowEveryGroup(request *kmsg.OffsetFetchRequest, response *kmsg.OffsetFetchResponse) bool {
	isChanged := false
	if response.ErrorCode == kerr.GroupIDNotFound.Code {
		response.ErrorCode = 0
		for _, topic := range request.Topics {
			response.Topics = append(response.Topics, withoutCommits(topic))
		}
		isChanged = true
	}
	for i := range response.Groups {
		if group := &response.Groups[i]; group.ErrorCode == kerr.GroupIDNotFound.Code {
			group.ErrorCode = 0
			isChanged = true
		}
	}
	return isChanged
}

func withoutCommits(topic kmsg.OffsetFetchRequestTopic) kmsg.OffsetFetchResponseTopic {
	answer := kmsg.NewOffsetFetchResponseTopic()
	answer.Topic = topic.Topic
	for _, number := range topic.Partitions {
		partition := kmsg.NewOffsetFetchResponseTopicPartition()
		partition.Partition, partition.Offset, partition.LeaderEpoch = number, -1, -1
		answer.Partitions = append(answer.Partitions, partition)
	}
	return answer
}

// lead names all doors as brokers and any of them as the leader of each partition, where every broker is an agent.
func (c *cluster) lead(response *kmsg.MetadataResponse) bool {
	if !c.preset.agents {
		return false
	}
	response.Brokers = nil
	for _, door := range c.doors {
		broker := kmsg.NewMetadataResponseBroker()
		broker.NodeID, broker.Host, broker.Port = int32(door.node), "127.0.0.1", c.advertised(door)
		response.Brokers = append(response.Brokers, broker)
	}
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			partition := &response.Topics[i].Partitions[j]
			partition.Leader = int32(rand.IntN(len(c.doors)))
			partition.Replicas = []int32{partition.Leader}
			partition.ISR = partition.Replicas
		}
	}
	return true
}

// refuse names no coordinator of a group that the client may not describe.
func (c *cluster) refuse(request *kmsg.FindCoordinatorRequest, response *kmsg.FindCoordinatorResponse) bool {
	if c.preset.describable == "" {
		return false
	}
	if request.Version < 4 && !strings.HasPrefix(request.CoordinatorKey, c.preset.describable) {
		response.NodeID, response.ErrorCode = -1, kerr.GroupAuthorizationFailed.Code
	}
	for i := range response.Coordinators {
		if found := &response.Coordinators[i]; !strings.HasPrefix(found.Key, c.preset.describable) {
			found.NodeID, found.ErrorCode = -1, kerr.GroupAuthorizationFailed.Code
		}
	}
	return true
}

func (c *cluster) coordinate(response *kmsg.FindCoordinatorResponse) bool {
	if !c.preset.agents {
		return false
	}
	chosen := c.doors[rand.IntN(len(c.doors))]
	response.NodeID, response.Port = int32(chosen.node), c.advertised(chosen)
	for i := range response.Coordinators {
		response.Coordinators[i].NodeID, response.Coordinators[i].Port = response.NodeID, response.Port
	}
	return true
}

func (c *cluster) advertised(door *door) int32 {
	if c.preset.oneAddress {
		return int32(c.doors[0].port)
	}
	return int32(door.port)
}
