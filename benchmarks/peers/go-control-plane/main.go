// The peer of the fan-out benchmark: ClusterLoadAssignments served by go-control-plane's SnapshotCache.
//
// Flags, control port and resources are those of benchmarks/synthetic_server.py. All nodes have the same key, so
// a change is one SetSnapshot.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

const nodeKey = "n"

// oneNode gives every node the same key.
type oneNode struct{}

func (oneNode) ID(*core.Node) string { return nodeKey }

// assignment returns the endpoints of one service; revision changes their port.
func assignment(service, endpoints, revision int) *endpoint.ClusterLoadAssignment {
	members := make([]*endpoint.LbEndpoint, endpoints)
	for i := range members {
		number := service*endpoints + i
		address := fmt.Sprintf("10.%d.%d.%d", number>>16&0xff, number>>8&0xff, number&0xff)
		members[i] = &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{
			Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
				Address:       address,
				PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(8080 + revision%50000)},
			}}},
		}}}
	}
	return &endpoint.ClusterLoadAssignment{
		ClusterName: fmt.Sprintf("ns/svc-%d|80", service),
		Endpoints:   []*endpoint.LocalityLbEndpoints{{LbEndpoints: members}},
	}
}

// state has the served resources and their changes.
type state struct {
	mutex     sync.Mutex
	cache     cache.SnapshotCache
	resources []types.Resource
	endpoints int
	revision  int
}

// publish sets the snapshot of the current revision.
func (s *state) publish(ctx context.Context) error {
	snapshot, err := cache.NewSnapshot(fmt.Sprint(s.revision), map[resource.Type][]types.Resource{
		resource.EndpointType: s.resources,
	})
	if err != nil {
		return err
	}
	return s.cache.SetSnapshot(ctx, nodeKey, snapshot)
}

// bump creates the first assignment again; the others stay the same objects.
func (s *state) bump(ctx context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.revision++
	changed := append([]types.Resource(nil), s.resources...)
	changed[0] = assignment(0, s.endpoints, s.revision)
	s.resources = changed
	return s.publish(ctx)
}

// serverCredentials reads ca.pem, s.pem and s.key; clients must have a certificate.
func serverCredentials(directory string) (credentials.TransportCredentials, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(directory, "s.pem"), filepath.Join(directory, "s.key"))
	if err != nil {
		return nil, err
	}
	roots, err := os.ReadFile(filepath.Join(directory, "ca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, errors.New("ca.pem holds no certificate")
	}
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		MinVersion:   tls.VersionTLS12,
	}), nil
}

// cpuSeconds returns the user and system time of the process.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func run() error {
	services := flag.Int("services", 1, "ClusterLoadAssignments")
	endpoints := flag.Int("endpoints", 10, "endpoints of each")
	port := flag.Int("port", 18000, "port of the discovery service")
	controlPort := flag.Int("control-port", 18001, "port of /bump and /stats")
	tlsDir := flag.String("tls-dir", ".", "directory of ca.pem, s.pem and s.key")
	flag.Parse()

	ctx := context.Background()
	served := &state{cache: cache.NewSnapshotCache(false, oneNode{}, nil), endpoints: *endpoints}
	for i := range *services {
		served.resources = append(served.resources, assignment(i, *endpoints, 0))
	}
	if err := served.publish(ctx); err != nil {
		return err
	}

	var streams, responses atomic.Int64
	callbacks := server.CallbackFuncs{
		StreamOpenFunc:        func(context.Context, int64, string) error { streams.Add(1); return nil },
		StreamClosedFunc:      func(int64, *core.Node) { streams.Add(-1) },
		DeltaStreamOpenFunc:   func(context.Context, int64, string) error { streams.Add(1); return nil },
		DeltaStreamClosedFunc: func(int64, *core.Node) { streams.Add(-1) },
		StreamResponseFunc: func(context.Context, int64, *discovery.DiscoveryRequest, *discovery.DiscoveryResponse) {
			responses.Add(1)
		},
		StreamDeltaResponseFunc: func(int64, *discovery.DeltaDiscoveryRequest, *discovery.DeltaDiscoveryResponse) {
			responses.Add(1)
		},
	}
	secure, err := serverCredentials(*tlsDir)
	if err != nil {
		return err
	}
	grpcServer := grpc.NewServer(
		grpc.Creds(secure),
		grpc.MaxRecvMsgSize(16<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	discovery.RegisterAggregatedDiscoveryServiceServer(grpcServer, server.NewServer(ctx, served.cache, callbacks))
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		return err
	}

	control := http.NewServeMux()
	control.HandleFunc("GET /bump", func(w http.ResponseWriter, r *http.Request) {
		if err := served.bump(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	control.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"streams": streams.Load(), "responses_encoded": responses.Load(), "cpu_seconds": cpuSeconds(),
		})
	})
	failed := make(chan error, 2)
	go func() { failed <- grpcServer.Serve(listener) }()
	go func() { failed <- http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *controlPort), control) }()
	return <-failed
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
