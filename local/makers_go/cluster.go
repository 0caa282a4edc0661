package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
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
}

func start(chosen preset, ports []int) (*cluster, error) {
	made := &cluster{preset: chosen}
	for node, port := range ports {
		made.doors = append(made.doors, newDoor(made, node, port))
	}
	fake, err := kfake.NewCluster(
		kfake.Ports(made.innerPorts()...),
		kfake.ListenFn(made.listen),
		kfake.MaxVersions(chosen.newest),
		// Members of groups that a test has left behind.
		kfake.GroupMinSessionTimeout(time.Second),
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
	if c.preset.forgetsStopped {
		c.fake.ControlKey(int16(kmsg.ListGroups), listOnly("Stable", "PreparingRebalance", "CompletingRebalance"))
	}
	if c.preset.describable != "" {
		c.fake.ControlKey(int16(kmsg.ListGroups), listOnly("no state at all"))
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

// listOnly filters by state even in versions of the request that have no filter: kfake ignores the version.
func listOnly(states ...string) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(request kmsg.Request) (kmsg.Response, error, bool) {
		request.(*kmsg.ListGroupsRequest).StatesFilter = states
		return nil, nil, false
	}
}

// takeCommands listens for POST /stop?node=N, /start?node=N, /offer?node=N&preset=P, /move and /throttle?milliseconds=N.
func (c *cluster) takeCommands(port int) error {
	commands := http.NewServeMux()
	commands.HandleFunc("POST /stop", func(answer http.ResponseWriter, request *http.Request) {
		c.withDoor(answer, request, func(door *door) error { door.shut(); return nil })
	})
	commands.HandleFunc("POST /start", func(answer http.ResponseWriter, request *http.Request) {
		c.withDoor(answer, request, (*door).open)
	})
	commands.HandleFunc("POST /offer", func(answer http.ResponseWriter, request *http.Request) {
		c.withDoor(answer, request, func(door *door) error {
			chosen, ok := presets[request.FormValue("preset")]
			if !ok {
				return fmt.Errorf("there is no such preset")
			}
			door.offer(chosen.newest)
			return nil
		})
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
}
