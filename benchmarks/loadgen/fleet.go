package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"meshwright.benchmarks/loadgen/wire"
)

// fleet is all proxies with their counters.
type fleet struct {
	address     string
	control     string
	credentials credentials.TransportCredentials
	delta       bool
	mesh        bool // clusters, endpoints, listeners and routes; otherwise only endpoints
	services    []string
	parallel    int
	deadline    time.Duration
	proxies     []*proxy

	round   atomic.Int64
	missing atomic.Int64
	closing atomic.Bool
	dials   atomic.Int64

	mutex      sync.Mutex
	started    time.Time
	finished   chan struct{}
	last       time.Time
	latencies  []float64
	bytes      int64
	responses  int64
	resources  map[string]int64
	lost       int64
	losses     []string
	slowServed int64
}

// report is the answer to a command, as one line of JSON.
type report struct {
	Proxies     int              `json:"proxies"`
	Rounds      int              `json:"rounds"`
	Seconds     float64          `json:"seconds"`
	LastAck     distribution     `json:"last_ack_ms"`
	EachAck     distribution     `json:"each_ack_ms"`
	Bytes       int64            `json:"bytes"`
	Responses   int64            `json:"responses"`
	Resources   map[string]int64 `json:"resources"`
	Lost        int64            `json:"lost"`
	Losses      []string         `json:"losses"`
	SlowSettled int64            `json:"slow_settled"`
	Refused     int64            `json:"refused"`
}

type distribution struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// distributed sorts values in place; percentiles use the nearest-rank method.
func distributed(values []float64) distribution {
	if len(values) == 0 {
		return distribution{}
	}
	slices.Sort(values)
	rank := func(share float64) float64 {
		return values[min(len(values)-1, max(0, int(share*float64(len(values))+0.9999999)-1))]
	}
	return distribution{rank(0.5), rank(0.99), values[len(values)-1]}
}

// names returns the resource names of a request for a type: empty, a wildcard, for clusters and listeners.
func (f *fleet) names(typeURL string) []string {
	if typeURL == wire.EndpointType || typeURL == wire.RouteType {
		return f.services
	}
	return nil
}

func (f *fleet) expected(typeURL string) int {
	if typeURL == wire.ListenerType {
		return 1
	}
	return len(f.services)
}

func (f *fleet) begin() {
	f.mutex.Lock()
	f.finished = make(chan struct{})
	f.started = time.Now()
	f.mutex.Unlock()
	waiting := int64(0)
	for _, p := range f.proxies {
		if !p.slow {
			waiting++
		}
	}
	f.missing.Store(waiting)
	f.round.Add(1)
}

// done counts a proxy that has received and acknowledged the change of this round.
func (f *fleet) done(p *proxy) {
	now := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	p.settled = true
	if p.slow {
		f.slowServed++
		return
	}
	f.latencies = append(f.latencies, float64(now.Sub(f.started).Nanoseconds())/1e6)
	if f.missing.Add(-1) == 0 {
		f.last = now
		close(f.finished)
	}
}

func (f *fleet) count(p *proxy, size int, typeURL string, resources int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	p.got[typeURL] += resources
	if p.slow {
		return
	}
	f.bytes += int64(size)
	f.responses++
	f.resources[typeURL] += int64(resources)
}

func (f *fleet) ended(p *proxy, err error) {
	if f.closing.Load() {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.lost++; f.lost <= 3 { // three reasons are enough for the report
		f.losses = append(f.losses, fmt.Sprintf("proxy %d after %.1f s: %v", p.number, time.Since(f.started).Seconds(), err))
	}
}

// wait returns the seconds from the start of the round to its last acknowledgement.
func (f *fleet) wait() (float64, error) {
	select {
	case <-f.finished:
		return f.last.Sub(f.started).Seconds(), nil
	case <-time.After(f.deadline):
		f.mutex.Lock()
		defer f.mutex.Unlock()
		return 0, fmt.Errorf("%d of %d proxies are still waiting after %v; %d streams were lost: %v; the first that waits: %v",
			f.missing.Load(), len(f.proxies), f.deadline, f.lost, f.losses, f.firstWaiting())
	}
}

// firstWaiting describes a waiting proxy for an error message; the caller holds the mutex.
func (f *fleet) firstWaiting() string {
	for _, p := range f.proxies {
		if !p.slow && !p.settled {
			return fmt.Sprintf("number %d, which received %v", p.number, p.got)
		}
	}
	return "none: a change was not pushed"
}

// settle returns the counts since the last report, and resets them.
func (f *fleet) settle() report {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	out := report{
		Proxies: len(f.proxies), EachAck: distributed(f.latencies), Bytes: f.bytes, Responses: f.responses,
		Resources: f.resources, Lost: f.lost, Losses: f.losses, SlowSettled: f.slowServed,
	}
	f.latencies, f.bytes, f.responses, f.resources, f.lost = nil, 0, 0, map[string]int64{}, 0
	f.losses, f.slowServed = []string{}, 0
	return out
}

// connect opens all streams, `parallel` at a time (0: all at once), and waits for the first configuration.
// Refused proxies connect again, as Envoy does, until the deadline.
func (f *fleet) connect() (report, error) {
	f.closing.Store(false)
	f.dials.Store(0)
	f.begin()
	limit := f.parallel
	if limit == 0 {
		limit = len(f.proxies)
	}
	slots, failures := make(chan struct{}, limit), make(chan error, len(f.proxies))
	for _, p := range f.proxies {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			failures <- p.connect(context.Background())
		}()
	}
	late := time.After(f.deadline)
	for range f.proxies {
		select {
		case err := <-failures:
			if err != nil {
				return report{}, err
			}
		case <-late:
			return report{}, fmt.Errorf("not all of %d proxies have a stream after %v", len(f.proxies), f.deadline)
		}
	}
	seconds, err := f.wait()
	out := f.settle()
	out.Refused = f.dials.Load() - int64(len(f.proxies))
	out.Rounds, out.Seconds, out.LastAck = 1, seconds, distribution{seconds * 1e3, seconds * 1e3, seconds * 1e3}
	return out, err
}

// bump changes the first assignment `times` times, and waits each time until every proxy has acknowledged.
func (f *fleet) bump(times int) (report, error) {
	var rounds []float64
	total := 0.0
	for range times {
		f.begin()
		if err := f.get("/bump"); err != nil {
			return report{}, err
		}
		seconds, err := f.wait()
		if err != nil {
			return report{}, err
		}
		rounds = append(rounds, seconds*1e3)
		total += seconds
	}
	out := f.settle()
	out.Rounds, out.Seconds, out.LastAck = times, total, distributed(rounds)
	return out, nil
}

func (f *fleet) get(path string) error {
	answer, err := http.Get(f.control + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return nil
}

func (f *fleet) disconnect() {
	f.closing.Store(true)
	var all sync.WaitGroup
	for _, p := range f.proxies {
		all.Go(p.disconnect)
	}
	all.Wait()
}
