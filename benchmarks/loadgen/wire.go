package main

import (
	"errors"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

const typePrefix = "type.googleapis.com/"

const (
	clusterType  = typePrefix + "envoy.config.cluster.v3.Cluster"
	endpointType = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = typePrefix + "envoy.config.listener.v3.Listener"
	routeType    = typePrefix + "envoy.config.route.v3.RouteConfiguration"
)

// rawCodec hands messages through as bytes: this program reads a few fields of them, and encodes few.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "proto" }

// request is a DiscoveryRequest or DeltaDiscoveryRequest.
type request struct {
	typeURL string
	node    string
	names   []string          // all of them in state of the world, the additional ones in delta
	held    map[string]string // initial_resource_versions, delta only
	version string            // state of the world only
	nonce   string
}

func (r *request) encode(delta bool) []byte {
	var out []byte
	text := func(number protowire.Number, value string) {
		if value != "" {
			out = protowire.AppendTag(out, number, protowire.BytesType)
			out = protowire.AppendString(out, value)
		}
	}
	node := func(number protowire.Number) {
		if r.node != "" {
			text(number, string(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), r.node)))
		}
	}
	if !delta {
		text(1, r.version)
		node(2)
		for _, name := range r.names {
			text(3, name)
		}
		text(4, r.typeURL)
		text(5, r.nonce)
		return out
	}
	node(1)
	text(2, r.typeURL)
	for _, name := range r.names {
		text(3, name)
	}
	for name, version := range r.held {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), version)
		text(5, string(entry))
	}
	text(6, r.nonce)
	return out
}

// named is one resource of a delta response.
type named struct{ name, version string }

// response is what is read of a DiscoveryResponse or DeltaDiscoveryResponse.
type response struct {
	version, typeURL, nonce string
	resources               int
	named                   []named // delta, and only if asked for
}

var errMalformed = errors.New("not a discovery response")

func readResponse(data []byte, withNames bool) (response, error) {
	var out response
	err := eachField(data, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			out.version = string(value)
		case 2:
			out.resources++
			if withNames {
				one, err := readNamed(value)
				out.named = append(out.named, one)
				return err
			}
		case 4:
			out.typeURL = string(value)
		case 5:
			out.nonce = string(value)
		}
		return nil
	})
	return out, err
}

func readNamed(data []byte) (named, error) {
	var out named
	err := eachField(data, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			out.version = string(value)
		case 3:
			out.name = string(value)
		}
		return nil
	})
	return out, err
}

// eachField visits the length-delimited fields of a message and passes over all others.
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
