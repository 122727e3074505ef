package main

import (
	"hash/maphash"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"meshwright.benchmarks/loadgen/wire"
)

// reference has the names in a resource, by type.
type reference map[string][]string

// references caches the names in each body by its hash: sidecars hold the same bodies, and not every control
// plane gives each resource its own version.
type references struct {
	mutex sync.Mutex
	known map[uint64]reference
}

var seed = maphash.MakeSeed()

// of returns the names in a resource.
func (r *references) of(one wire.Named) (reference, error) {
	key := maphash.Bytes(seed, one.Body)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if found, ok := r.known[key]; ok {
		return found, nil
	}
	var body anypb.Any
	if err := proto.Unmarshal(one.Body, &body); err != nil {
		return nil, err
	}
	found := reference{}
	visit(body.ProtoReflect(), found)
	if r.known == nil {
		r.known = map[uint64]reference{}
	}
	r.known[key] = found
	return found, nil
}

// visit walks a message and all messages packed in it; unknown types are skipped.
func visit(message protoreflect.Message, found reference) {
	switch each := message.Interface().(type) {
	case *anypb.Any:
		if packed, err := each.UnmarshalNew(); err == nil {
			visit(packed.ProtoReflect(), found)
		}
		return
	case *clusterv3.Cluster:
		if each.GetType() == clusterv3.Cluster_EDS {
			name := each.GetEdsClusterConfig().GetServiceName()
			if name == "" {
				name = each.GetName()
			}
			found[wire.EndpointType] = append(found[wire.EndpointType], name)
		}
	case *hcmv3.Rds:
		found[wire.RouteType] = append(found[wire.RouteType], each.GetRouteConfigName())
	case *tlsv3.SdsSecretConfig:
		if each.GetSdsConfig().GetAds() == nil {
			return // another program has it, for example the agent next to the sidecar
		}
		found[wire.SecretType] = append(found[wire.SecretType], each.GetName())
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil {
			return true
		}
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				value.Map().Range(func(_ protoreflect.MapKey, each protoreflect.Value) bool {
					visit(each.Message(), found)
					return true
				})
			}
		case field.IsList():
			for i := range value.List().Len() {
				visit(value.List().Get(i).Message(), found)
			}
		default:
			visit(value.Message(), found)
		}
		return true
	})
}
