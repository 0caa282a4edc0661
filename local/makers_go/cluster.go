package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const offsetsTopic = "__consumer_offsets"

// A cluster is kfake behind doors: every byte passes one of them, so they can change answers and be shut.
type cluster struct {
	preset preset
	fake   *kfake.Cluster
	doors  []*door
	// throttle is how long each response asks its client to wait.
	throttle atomic.Int64

	mutex sync.Mutex
	// groups are those that have been seen, for the placement of coordinators.
	groups map[string]bool
}

func start(chosen preset, ports []int) (*cluster, error) {
	made := &cluster{preset: chosen, groups: make(map[string]bool)}
	for node, port := range ports {
		made.doors = append(made.doors, newDoor(made, node, port))
	}
	fake, err := kfake.NewCluster(
		kfake.Ports(made.innerPorts()...),
		kfake.ListenFn(made.listen),
		kfake.MaxVersions(chosen.newest),
		// Members of groups that a test has left behind.
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}),
	)
	if err != nil {
		return nil, err
	}
	made.fake = fake
	if err := made.prepare(); err != nil {
		fake.Close()
		return nil, err
	}
	for _, door := range made.doors {
		if err := door.open(); err != nil {
			fake.Close()
			return nil, err
		}
	}
	return made, nil
}

func (c *cluster) prepare() error {
	if count := c.preset.offsetsPartitions; count > 0 {
		internal := map[string]string{"kfake.is_internal": "true", "cleanup.policy": "compact"}
		if err := c.fake.CreateTopic(offsetsTopic, int32(count), internal); err != nil {
			return fmt.Errorf("creating %s: %w", offsetsTopic, err)
		}
	}
	if c.preset.placesAsKafka {
		for _, key := range []kmsg.Key{kmsg.FindCoordinator, kmsg.OffsetCommit, kmsg.JoinGroup} {
			c.fake.ControlKey(int16(key), c.noteGroups)
		}
	}
	if c.preset.forgetsStopped {
		c.fake.ControlKey(int16(kmsg.ListGroups), listOnlyActive)
	}
	return nil
}

// innerPorts has one port for each kfake broker; with agents, one broker stands behind all doors.
func (c *cluster) innerPorts() []int {
	var ports []int
	for _, door := range c.doors {
		ports = append(ports, door.port)
	}
	if c.preset.agents {
		return ports[:1]
	}
	return ports
}

// listen gives a kfake broker the connections that its doors accept.
func (c *cluster) listen(_, address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	inner := newInner(number)
	for _, door := range c.doors {
		if c.preset.agents || door.port == number {
			door.inner = inner
		}
	}
	return inner, nil
}

// noteGroups lets the broker that kfake chooses lead the group's partition of the offsets topic, as in Kafka, where the
// partition's leader is the coordinator.
func (c *cluster) noteGroups(request kmsg.Request) (kmsg.Response, error, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, group := range groupsOf(request) {
		if !c.groups[group] {
			c.groups[group] = true
			c.place(group)
		}
	}
	return nil, nil, false
}

func (c *cluster) place(group string) {
	partition := javaHash(group) % int32(c.preset.offsetsPartitions)
	if node := c.fake.CoordinatorFor(group); node != c.fake.LeaderFor(offsetsTopic, partition) {
		c.fake.MoveTopicPartition(offsetsTopic, partition, node)
	}
}

func groupsOf(request kmsg.Request) []string {
	switch request := request.(type) {
	case *kmsg.FindCoordinatorRequest:
		if request.CoordinatorType != 0 {
			return nil
		}
		if request.Version < 4 {
			return []string{request.CoordinatorKey}
		}
		return request.CoordinatorKeys
	case *kmsg.OffsetCommitRequest:
		return []string{request.Group}
	case *kmsg.JoinGroupRequest:
		return []string{request.Group}
	}
	return nil
}

// javaHash is String.hashCode without its sign, as Kafka takes it. Group names of tests are ASCII.
func javaHash(text string) int32 {
	var hash int32
	for _, char := range text {
		hash = 31*hash + char
	}
	return hash & 0x7fffffff
}

// listOnlyActive filters by state even in versions of the request that have no filter: kfake ignores the version.
func listOnlyActive(request kmsg.Request) (kmsg.Response, error, bool) {
	request.(*kmsg.ListGroupsRequest).StatesFilter = []string{"Stable", "PreparingRebalance", "CompletingRebalance"}
	return nil, nil, false
}

// takeCommands listens for POST /stop?node=N, /start?node=N, /move and /throttle?milliseconds=N.
func (c *cluster) takeCommands(port int) error {
	commands := http.NewServeMux()
	commands.HandleFunc("POST /stop", func(answer http.ResponseWriter, request *http.Request) {
		c.withDoor(answer, request, func(door *door) error { door.shut(); return nil })
	})
	commands.HandleFunc("POST /start", func(answer http.ResponseWriter, request *http.Request) {
		c.withDoor(answer, request, (*door).open)
	})
	commands.HandleFunc("POST /move", func(http.ResponseWriter, *http.Request) { c.move() })
	commands.HandleFunc("POST /throttle", func(answer http.ResponseWriter, request *http.Request) {
		milliseconds, err := strconv.Atoi(request.FormValue("milliseconds"))
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		c.throttle.Store(int64(milliseconds))
	})
	return http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), commands)
}

func (c *cluster) withDoor(answer http.ResponseWriter, request *http.Request, change func(*door) error) {
	node, err := strconv.Atoi(request.FormValue("node"))
	if err != nil || node < 0 || node >= len(c.doors) {
		http.Error(answer, "there is no such node", http.StatusBadRequest)
		return
	}
	if err := change(c.doors[node]); err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
	}
}

// move gives every partition and every group to a broker chosen anew.
func (c *cluster) move() {
	c.fake.ShufflePartitionLeaders()
	c.fake.RehashCoordinators()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.preset.placesAsKafka {
		for group := range c.groups {
			c.place(group)
		}
	}
}
