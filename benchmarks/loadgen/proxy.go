package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"meshwright.benchmarks/loadgen/wire"
)

const adsService = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

// proxy is one client with one connection and one stream. Its fields belong to the goroutine that runs it, but
// got and settled are written under the fleet's mutex too, because error messages about waiting proxies read them.
type proxy struct {
	number  int
	fleet   *fleet
	slow    bool
	stream  grpc.ClientStream
	cancel  context.CancelFunc
	stopped sync.WaitGroup

	asked   map[string]bool              // types requested on this stream
	got     map[string]int               // minimum number of resources received on this stream by type
	version map[string]string            // newest version by type, on this stream
	held    map[string]map[string]string // delta: versions by name, which survive the stream
	settled bool                         // has its first configuration
	counted int64                        // the last counted round
}

// order is that of Envoy's start: each type is requested after the previous one was received.
func (p *proxy) order() []string {
	if p.fleet.mesh {
		return []string{wire.ClusterType, wire.EndpointType, wire.ListenerType, wire.RouteType}
	}
	return []string{wire.EndpointType}
}

// connect dials, opens the stream and sends the first request; responses trigger the others.
func (p *proxy) connect(ctx context.Context) error {
	retry := backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.5, MaxDelay: 30 * time.Second} // as in Envoy
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(p.fleet.credentials),
		grpc.WithInitialWindowSize(wire.StreamWindow),
		grpc.WithInitialConnWindowSize(wire.ConnectionWindow),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(wire.RawCodec{}), grpc.MaxCallRecvMsgSize(64<<20), grpc.WaitForReady(true),
		),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: 20 * time.Second}),
		grpc.WithContextDialer(p.dial),
	}
	connection, err := grpc.NewClient("passthrough:///"+p.fleet.address, options...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	method := "StreamAggregatedResources"
	if p.fleet.delta {
		method = "DeltaAggregatedResources"
	}
	description := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := connection.NewStream(ctx, description, adsService+method)
	if err != nil {
		cancel()
		return fmt.Errorf("proxy %d: %w", p.number, err)
	}
	p.stream, p.cancel = stream, func() { cancel(); connection.Close() }
	p.asked, p.got, p.version = map[string]bool{}, map[string]int{}, map[string]string{}
	p.settled = false
	types := p.order()
	if !p.slow && len(p.held) == 0 {
		types = types[:1]
	}
	for _, typeURL := range types { // after a reconnect all types at once, as Envoy does
		if err := p.ask(typeURL); err != nil {
			return err
		}
	}
	p.stopped.Add(1)
	go p.receive()
	return nil
}

func (p *proxy) ask(typeURL string) error {
	asking := wire.Request{TypeURL: typeURL, Names: p.fleet.names(typeURL)}
	if len(p.asked) == 0 {
		asking.Node = wire.Node(fmt.Sprintf("u%d", p.number))
	}
	if p.fleet.delta {
		asking.Held = p.held[typeURL]
	}
	p.asked[typeURL] = true
	return p.send(&asking)
}

func (p *proxy) send(message *wire.Request) error {
	data := message.Encode(p.fleet.delta)
	return p.stream.SendMsg(&data)
}

func (p *proxy) receive() {
	defer p.stopped.Done()
	for {
		var data []byte
		if err := p.stream.RecvMsg(&data); err != nil {
			p.fleet.ended(p, err)
			return
		}
		if err := p.take(data); err != nil {
			p.fleet.ended(p, err)
			return
		}
	}
}

// take acknowledges a response, and informs the fleet if the round waits for it.
func (p *proxy) take(data []byte) error {
	round := p.fleet.round.Load() // the round begins before its change is requested
	received, err := wire.ReadResponse(data, p.fleet.delta && p.fleet.mesh)
	if err != nil {
		return err
	}
	ack := wire.Request{TypeURL: received.TypeURL, Nonce: received.Nonce}
	if !p.fleet.delta {
		ack.Version, ack.Names = received.Version, p.fleet.names(received.TypeURL)
	}
	if err := p.send(&ack); err != nil {
		return err
	}
	p.fleet.count(p, len(data), received.TypeURL, received.Resources)
	p.hold(received)
	changed := p.version[received.TypeURL] != received.Version
	p.version[received.TypeURL] = received.Version
	if !p.settled {
		return p.progress()
	}
	if received.TypeURL == wire.EndpointType && changed && p.counted != round {
		p.counted = round
		p.fleet.done(p)
	}
	return nil
}

func (p *proxy) hold(received wire.Response) {
	for _, one := range received.Named {
		if p.held == nil {
			p.held = map[string]map[string]string{}
		}
		if p.held[received.TypeURL] == nil {
			p.held[received.TypeURL] = map[string]string{}
		}
		p.held[received.TypeURL][one.Name] = one.Version
	}
}

// progress requests the next type when one is complete, and ends when all are.
func (p *proxy) progress() error {
	for _, typeURL := range p.order() {
		if !p.asked[typeURL] {
			if err := p.ask(typeURL); err != nil {
				return err
			}
		}
		if !p.complete(typeURL) {
			return nil
		}
	}
	p.counted = p.fleet.round.Load()
	p.fleet.done(p)
	return nil
}

func (p *proxy) complete(typeURL string) bool {
	_, answered := p.version[typeURL]
	expected := p.fleet.expected(typeURL)
	if p.fleet.delta && typeURL != wire.EndpointType && len(p.held[typeURL]) >= expected {
		// The server need not send held resources again; for routes not even a response.
		return answered || typeURL == wire.RouteType
	}
	return answered && p.got[typeURL] >= expected
}

// disconnect ends the stream and waits for its goroutine.
func (p *proxy) disconnect() {
	if p.cancel != nil {
		p.cancel()
		p.stopped.Wait()
		p.cancel = nil
	}
}

// slowConn reads normally until TLS and HTTP/2 are set up, and then a few bytes at a time.
type slowConn struct {
	net.Conn
	read int
}

func (c *slowConn) Read(buffer []byte) (int, error) {
	if c.read > 8<<10 {
		time.Sleep(100 * time.Millisecond)
		buffer = buffer[:min(len(buffer), 100)]
	}
	size, err := c.Conn.Read(buffer)
	c.read += size
	return size, err
}

// dial counts connections: every one after the first means that the server refused one, or ended its handshake.
func (p *proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	p.fleet.dials.Add(1)
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil || !p.slow {
		return connection, err
	}
	return &slowConn{Conn: connection}, nil
}
