package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"meshwright.benchmarks/loadgen/wire"
)

const method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"

// holders are the types whose resources name others; the other types are requested by these names.
var holders = []string{wire.ClusterType, wire.ListenerType, wire.RouteType}

// sidecar is one client with one connection and one stream. Its maps belong to the receiving goroutine.
type sidecar struct {
	number  int
	name    string
	node    []byte
	roots   *x509.CertPool
	fleet   *fleet
	stream  grpc.ClientStream
	cancel  context.CancelFunc
	stopped sync.WaitGroup

	answered   map[string]bool                 // types with a response
	asked      map[string]map[string]bool      // names subscribed to, by type
	held       map[string]map[string]bool      // names received, or known to be absent, by type
	named      map[string]map[string]reference // by the holder's type and name: the names in it
	configured atomic.Int64                    // time at which all requested resources were received
}

func (s *sidecar) credentials(roots *x509.CertPool) (credentials.TransportCredentials, error) {
	if roots == nil {
		return insecure.NewCredentials(), nil
	}
	place := filepath.Join(s.fleet.directory, s.name)
	certificate, err := tls.LoadX509KeyPair(place+".pem", place+".key")
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots}), nil
}

// connect dials, opens the stream and requests clusters; responses trigger the other requests.
func (s *sidecar) connect(roots *x509.CertPool) error {
	s.roots, s.cancel = roots, func() {}
	secure, err := s.credentials(roots)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("passthrough:///"+s.fleet.address,
		grpc.WithTransportCredentials(secure),
		grpc.WithSharedWriteBuffer(true),
		grpc.WithInitialWindowSize(wire.StreamWindow),
		grpc.WithInitialConnWindowSize(wire.ConnectionWindow),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.RawCodec{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	description := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := connection.NewStream(ctx, description, method)
	if err != nil {
		cancel()
		connection.Close()
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.stream, s.cancel = stream, func() { cancel(); connection.Close() }
	s.answered, s.asked = map[string]bool{}, map[string]map[string]bool{}
	s.held, s.named = map[string]map[string]bool{}, map[string]map[string]reference{}
	s.configured.Store(0)
	err = s.send(&wire.Request{TypeURL: wire.ClusterType, Node: s.node})
	if err != nil && !errors.Is(err, io.EOF) { // the receiving side gets the reason
		return err
	}
	s.stopped.Add(1)
	go s.receive()
	return nil
}

func (s *sidecar) send(message *wire.Request) error {
	data := message.Encode(true)
	return s.stream.SendMsg(&data)
}

func (s *sidecar) receive() {
	defer s.stopped.Done()
	for {
		var data []byte
		err := s.stream.RecvMsg(&data)
		if err == nil {
			err = s.take(data, time.Now())
		}
		if err == nil {
			continue
		}
		if !s.fleet.closing.Load() {
			s.again(err)
		}
		return
	}
}

// again reconnects after a delay when the control plane has ended a stream, configured or not, as Envoy does.
func (s *sidecar) again(reason error) {
	if s.configured.Load() == 0 {
		s.fleet.refuse(reason)
	} else {
		s.fleet.missing.Add(1)
		s.fleet.ended(s, reason)
	}
	for reason != nil && !s.fleet.closing.Load() {
		s.cancel()
		time.Sleep(500*time.Millisecond + rand.N(500*time.Millisecond))
		reason = s.connect(s.roots)
	}
}

// take acknowledges a response and requests the names in it.
func (s *sidecar) take(data []byte, received time.Time) error {
	response, err := wire.ReadResponse(data, true)
	if err != nil {
		return err
	}
	if err := s.send(&wire.Request{TypeURL: response.TypeURL, Nonce: response.Nonce}); err != nil {
		return err
	}
	acked := time.Now()
	s.fleet.note(came{
		received.UnixNano(), acked.UnixNano(), s.number,
		response.TypeURL[strings.LastIndexByte(response.TypeURL, '.')+1:],
		len(data), response.Resources, len(response.Removed),
	}, acked)
	if err := s.hold(response); err != nil {
		return err
	}
	if !s.answered[response.TypeURL] {
		s.answered[response.TypeURL] = true
		if response.TypeURL == wire.ClusterType {
			if err := s.send(&wire.Request{TypeURL: wire.ListenerType}); err != nil {
				return err
			}
		}
	}
	if s.configured.Load() == 0 && s.complete() {
		s.configured.Store(time.Now().UnixNano())
		s.fleet.missing.Add(-1)
	}
	return nil
}

// hold applies the resources and removals of a response, and follows the names in it.
func (s *sidecar) hold(response wire.Response) error {
	names, held := s.named[response.TypeURL], s.held[response.TypeURL]
	if held == nil {
		names, held = map[string]reference{}, map[string]bool{}
		s.named[response.TypeURL], s.held[response.TypeURL] = names, held
	}
	holds := response.TypeURL != wire.EndpointType && response.TypeURL != wire.SecretType
	for _, one := range response.Named {
		held[one.Name] = true
		if holds {
			found, err := s.fleet.references.of(one)
			if err != nil {
				return err
			}
			names[one.Name] = found
		}
	}
	for _, name := range response.Removed {
		delete(names, name)
		if response.TypeURL == wire.ClusterType || response.TypeURL == wire.ListenerType {
			delete(held, name)
		} else {
			held[name] = true // known to be absent
		}
	}
	if !holds {
		return nil
	}
	return s.follow()
}

// follow subscribes to new names, and unsubscribes from names that are gone.
func (s *sidecar) follow() error {
	wanted := map[string]map[string]bool{wire.EndpointType: {}, wire.RouteType: {}, wire.SecretType: {}}
	for _, holder := range holders {
		for _, found := range s.named[holder] {
			for typeURL, names := range found {
				for _, name := range names {
					wanted[typeURL][name] = true
				}
			}
		}
	}
	for _, typeURL := range []string{wire.EndpointType, wire.SecretType, wire.RouteType} {
		asking := wire.Request{TypeURL: typeURL}
		for name := range wanted[typeURL] {
			if !s.asked[typeURL][name] {
				asking.Names = append(asking.Names, name)
			}
		}
		for name := range s.asked[typeURL] {
			if !wanted[typeURL][name] {
				asking.Unsubscribe = append(asking.Unsubscribe, name)
				delete(s.held[typeURL], name)
				delete(s.named[typeURL], name)
			}
		}
		s.asked[typeURL] = wanted[typeURL]
		slices.Sort(asking.Names) // Envoy keeps both in a std::set, so equal requests have equal bytes
		slices.Sort(asking.Unsubscribe)
		if len(asking.Names)+len(asking.Unsubscribe) > 0 {
			if err := s.send(&asking); err != nil {
				return err
			}
		}
	}
	return nil
}

// complete returns whether all requested resources were received.
func (s *sidecar) complete() bool {
	if !s.answered[wire.ClusterType] || !s.answered[wire.ListenerType] {
		return false
	}
	for typeURL, names := range s.asked {
		for name := range names {
			if !s.held[typeURL][name] {
				return false
			}
		}
	}
	return true
}

func (s *sidecar) describe() string {
	return fmt.Sprintf("%s, answered %v, asked for %v", s.name, s.answered, s.asked)
}

// disconnect ends the stream and waits for its goroutine.
func (s *sidecar) disconnect() {
	if s.cancel != nil {
		s.cancel()
		s.stopped.Wait()
		s.cancel = nil
	}
}
