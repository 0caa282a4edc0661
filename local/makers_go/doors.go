package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// An inner is what a kfake broker takes for its listener.
type inner struct {
	port     int
	accepted chan net.Conn
	closed   chan struct{}
	close    sync.Once
}

func newInner(port int) *inner {
	return &inner{port: port, accepted: make(chan net.Conn), closed: make(chan struct{})}
}

func (i *inner) Accept() (net.Conn, error) {
	select {
	case connection := <-i.accepted:
		return connection, nil
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

func (i *inner) Close() error {
	i.close.Do(func() { close(i.closed) })
	return nil
}

func (i *inner) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: i.port}
}

// A door is the port of one broker. While it is shut, the broker is down for everybody.
type door struct {
	cluster *cluster
	node    int
	port    int
	inner   *inner

	mutex       sync.Mutex
	listener    net.Listener
	connections map[net.Conn]bool
	// offered is what this broker alone offers, as before an upgrade; nil: what all do.
	offered *kversion.Versions
}

func newDoor(of *cluster, node, port int) *door {
	return &door{cluster: of, node: node, port: port, connections: make(map[net.Conn]bool)}
}

func (d *door) open() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.listener != nil {
		return fmt.Errorf("node %d has not been stopped", d.node)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", d.port))
	if err != nil {
		return err
	}
	d.listener = listener
	go d.accept(listener)
	return nil
}

func (d *door) shut() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.listener == nil {
		return
	}
	d.listener.Close()
	d.listener = nil
	for connection := range d.connections {
		connection.Close()
	}
	clear(d.connections)
}

// offer limits what the broker offers to those who connect from now on.
func (d *door) offer(versions *kversion.Versions) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.offered = versions
}

func (d *door) newest(key int16) (int16, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.offered == nil {
		return math.MaxInt16, true
	}
	return d.offered.LookupMaxKeyVersion(key)
}

func (d *door) accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		if !d.keep(listener, connection) {
			return
		}
		select {
		case d.inner.accepted <- &wire{Conn: connection, door: d, asked: make(map[int32]kmsg.Request)}:
		case <-d.inner.closed:
			connection.Close()
			return
		}
	}
}

// keep returns false if the door was shut meanwhile.
func (d *door) keep(listener net.Listener, connection net.Conn) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.listener != listener {
		connection.Close()
		return false
	}
	d.connections[connection] = true
	return true
}

func (d *door) forget(connection net.Conn) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.connections, connection)
}

// A wire is a connection whose requests are remembered, so that their responses can be changed.
type wire struct {
	net.Conn
	door    *door
	pending []byte // of the frame that kfake is reading

	mutedUntil time.Time

	mutex sync.Mutex
	asked map[int32]kmsg.Request // by correlation id
}

func (w *wire) Close() error {
	w.door.forget(w.Conn)
	return w.Conn.Close()
}

func (w *wire) Read(into []byte) (int, error) {
	if len(w.pending) == 0 {
		frame, err := readFrame(w.Conn)
		if err != nil {
			return 0, err
		}
		if err := w.remember(frame[4:]); err != nil {
			return 0, err
		}
		w.pending = frame
	}
	count := copy(into, w.pending)
	w.pending = w.pending[count:]
	return count, nil
}

// Write gets a whole frame, as kfake writes each response at once, and only then takes up the next request. So a response
// that waits has the effect of a broker that mutes the connection.
func (w *wire) Write(frame []byte) (int, error) {
	time.Sleep(time.Until(w.mutedUntil))
	changed := frame
	if request := w.recall(int32(binary.BigEndian.Uint32(frame[4:8]))); request != nil {
		changed = w.changed(frame, request)
	}
	if _, err := w.Conn.Write(changed); err != nil {
		return 0, err
	}
	return len(frame), nil
}

func readFrame(from io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(frame)
	if size > 100<<20 {
		return nil, errors.New("a request of more than 100 MiB")
	}
	frame = append(frame, make([]byte, size)...)
	_, err := io.ReadFull(from, frame[4:])
	return frame, err
}

// remember fails for a request that is not offered, or that kfake cannot decode, at which it would panic or hang.
func (w *wire) remember(body []byte) error {
	reader := kbin.Reader{Src: body}
	key, version, correlation := reader.Int16(), reader.Int16(), reader.Int32()
	reader.NullableString()
	request := kmsg.RequestForKey(key)
	if request == nil {
		return fmt.Errorf("there is no request %d", key)
	}
	if newest, _ := w.door.newest(key); version > newest && key != int16(kmsg.ApiVersions) {
		return fmt.Errorf("request %d in version %d is not offered", key, version)
	}
	request.SetVersion(version)
	if request.IsFlexible() {
		kmsg.SkipTags(&reader)
	}
	if err := request.ReadFrom(reader.Src); err != nil {
		return err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.asked[correlation] = request
	return nil
}

func (w *wire) recall(correlation int32) kmsg.Request {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	request := w.asked[correlation]
	delete(w.asked, correlation)
	return request
}

// changed decodes a response, changes it and encodes it again.
func (w *wire) changed(frame []byte, request kmsg.Request) []byte {
	response := request.ResponseKind()
	start := 8
	if response.IsFlexible() && response.Key() != int16(kmsg.ApiVersions) {
		start = 9 // after the header's empty tags
	}
	if response.ReadFrom(frame[start:]) != nil {
		return frame
	}
	if !w.door.change(request, response, w.throttle(response)) {
		return frame
	}
	again := response.AppendTo(append([]byte(nil), frame[:start]...))
	binary.BigEndian.PutUint32(again, uint32(len(again)-4))
	return again
}

// throttle mutes the connection and returns for how many milliseconds; ApiVersions responses do not count.
func (w *wire) throttle(response kmsg.Response) int32 {
	milliseconds := int32(w.door.cluster.throttle.Load())
	if milliseconds == 0 || response.Key() == int16(kmsg.ApiVersions) {
		return 0
	}
	w.mutedUntil = time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	return milliseconds
}
