// Package wire encodes requests of xDS and reads a few fields of its responses.
package wire

import (
	"errors"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

const typePrefix = "type.googleapis.com/"

// The types of resources.
const (
	ClusterType  = typePrefix + "envoy.config.cluster.v3.Cluster"
	EndpointType = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType = typePrefix + "envoy.config.listener.v3.Listener"
	RouteType    = typePrefix + "envoy.config.route.v3.RouteConfiguration"
	SecretType   = typePrefix + "envoy.extensions.transport_sockets.tls.v3.Secret"
)

// StreamWindow and ConnectionWindow are flow-control windows in bytes, as large as Envoy's. With explicit windows
// gRPC does not measure the bandwidth: it would send a PING with all received data, and the server's answers
// would count as CPU time of the server. Envoy sends none.
const (
	StreamWindow     = 16 << 20
	ConnectionWindow = 24 << 20
)

// RawCodec passes messages on as bytes, because this program reads and writes only a few fields.
type RawCodec struct{}

// Marshal passes bytes on.
func (RawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal passes bytes on.
func (RawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name returns the name of the replaced codec.
func (RawCodec) Name() string { return "proto" }

// Request is a DiscoveryRequest or DeltaDiscoveryRequest.
type Request struct {
	TypeURL     string
	Node        []byte            // encoded, see [Node]
	Names       []string          // all of them in state of the world, the additional ones in delta
	Unsubscribe []string          // delta only
	Held        map[string]string // initial_resource_versions, delta only
	Version     string            // state of the world only
	Nonce       string
}

// Node returns an encoded Node with only an identifier.
func Node(identifier string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), identifier)
}

// Encode returns the message's bytes.
func (r *Request) Encode(delta bool) []byte {
	var out []byte
	text := func(number protowire.Number, value string) {
		if value != "" {
			out = protowire.AppendTag(out, number, protowire.BytesType)
			out = protowire.AppendString(out, value)
		}
	}
	if !delta {
		text(1, r.Version)
		text(2, string(r.Node))
		for _, name := range r.Names {
			text(3, name)
		}
		text(4, r.TypeURL)
		text(5, r.Nonce)
		return out
	}
	text(1, string(r.Node))
	text(2, r.TypeURL)
	for _, name := range r.Names {
		text(3, name)
	}
	for _, name := range r.Unsubscribe {
		text(4, name)
	}
	for name, version := range r.Held {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), version)
		text(5, string(entry))
	}
	text(6, r.Nonce)
	return out
}

// Named is one resource of a delta response; Body is its Any, a slice of the response's bytes.
type Named struct {
	Name, Version string
	Body          []byte
}

// Response has the fields read from a DiscoveryResponse or DeltaDiscoveryResponse.
type Response struct {
	Version, TypeURL, Nonce string
	Resources               int
	Named                   []Named  // delta, and only on request
	Removed                 []string // delta
}

var errMalformed = errors.New("not a discovery response")

// ReadResponse reads either message; withNames also reads the names in a delta response.
func ReadResponse(data []byte, withNames bool) (Response, error) {
	var out Response
	err := eachField(data, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			out.Version = string(value)
		case 2:
			out.Resources++
			if withNames {
				one, err := readNamed(value)
				out.Named = append(out.Named, one)
				return err
			}
		case 4:
			out.TypeURL = string(value)
		case 5:
			out.Nonce = string(value)
		case 6:
			if withNames { // state of the world has another field
				out.Removed = append(out.Removed, string(value))
			}
		}
		return nil
	})
	return out, err
}

func readNamed(data []byte) (Named, error) {
	var out Named
	err := eachField(data, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			out.Version = string(value)
		case 2:
			out.Body = value
		case 3:
			out.Name = string(value)
		}
		return nil
	})
	return out, err
}

// eachField visits the length-delimited fields of a message and skips the others.
func eachField(data []byte, visit func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		number, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return errMalformed
		}
		data = data[size:]
		if kind != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(number, kind, data); size < 0 {
				return errMalformed
			}
			data = data[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(data)
		if size < 0 {
			return errMalformed
		}
		if err := visit(number, value); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}
