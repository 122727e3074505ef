package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fleet is all sidecars, with their responses since the last report.
type fleet struct {
	address   string
	directory string // of certificates; plaintext if empty
	parallel  int
	deadline  time.Duration
	sidecars  []*sidecar
	connected int // number of connected sidecars, always the first ones
	references

	closing atomic.Bool
	missing atomic.Int64

	mutex   sync.Mutex
	came    []came
	touch   map[int]bool
	newest  time.Time
	lost    int
	losses  []string // first few reasons for lost and refused streams
	refused int
}

// came is one response: times of receipt and acknowledgement, its sidecar, and its contents.
type came struct {
	Received  int64  `json:"received"`
	Acked     int64  `json:"acked"`
	Proxy     int    `json:"proxy"`
	Type      string `json:"type"`
	Bytes     int    `json:"bytes"`
	Resources int    `json:"resources"`
	Removed   int    `json:"removed"`
}

// report is the answer to a command, as one line of JSON.
type report struct {
	Responses  []came   `json:"responses"`
	Configured []int64  `json:"configured"`
	Lost       int      `json:"lost"`
	Refused    int      `json:"refused"`
	Losses     []string `json:"losses"`
}

func (f *fleet) note(one came, now time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.came = append(f.came, one)
	if f.touch == nil {
		f.touch = map[int]bool{}
	}
	f.touch[one.Proxy] = true
	f.newest = now
}

func (f *fleet) ended(s *sidecar, err error) {
	if f.closing.Load() {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.lost++; f.lost <= 3 { // three reasons are enough for the report
		f.losses = append(f.losses, fmt.Sprintf("%s: %v", s.name, err))
	}
}

// refuse counts a stream that ended before its sidecar was configured; it will be opened again.
func (f *fleet) refuse(reason error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.refused++; f.refused == 1 {
		f.losses = append(f.losses, fmt.Sprintf("refused: %v", reason))
	}
}

// take returns the responses since the last report, and resets the list.
func (f *fleet) take() report {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	out := report{Responses: f.came, Lost: f.lost, Losses: f.losses, Refused: f.refused}
	f.came, f.touch, f.lost, f.losses, f.refused = nil, nil, 0, nil, 0
	return out
}

// wait returns when enough sidecars have a response and the quiet period has passed, or at the limit.
func (f *fleet) wait(count int, quiet, limit time.Duration) report {
	began := time.Now()
	for ticks := time.NewTicker(time.Millisecond); ; <-ticks.C {
		f.mutex.Lock()
		touched, newest := len(f.touch), f.newest
		f.mutex.Unlock()
		if newest.Before(began) {
			newest = began
		}
		now := time.Now()
		if touched >= count && now.Sub(newest) >= quiet || now.Sub(began) >= limit {
			return f.take()
		}
	}
}

// roots returns the CA certificates for the control plane; nil in plaintext.
func (f *fleet) roots() (*x509.CertPool, error) {
	if f.directory == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(f.directory, "ca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("ca.pem holds no certificate")
	}
	return pool, nil
}

// connect opens streams up to a number of them, `parallel` at a time (0: all at once), and waits until the
// new ones are configured.
func (f *fleet) connect(count int) (report, error) {
	f.closing.Store(false)
	roots, err := f.roots()
	if err != nil {
		return report{}, err
	}
	if count < f.connected || count > len(f.sidecars) {
		return report{}, fmt.Errorf("%d of %d sidecars are connected, there cannot be %d", f.connected, len(f.sidecars), count)
	}
	fresh := f.sidecars[f.connected:count]
	f.connected = count
	f.missing.Add(int64(len(fresh))) // connected sidecars may have lost their streams, and count too
	limit := f.parallel
	if limit == 0 {
		limit = len(fresh)
	}
	slots, failures := make(chan struct{}, limit), make(chan error, len(fresh))
	for _, s := range fresh {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := s.connect(roots)
			if status.Code(err) == codes.Unavailable { // a busy server also ends connections before a stream
				go s.again(err)
				err = nil
			}
			failures <- err
		}()
	}
	for range fresh {
		if err := <-failures; err != nil {
			return report{}, err
		}
	}
	for deadline := time.Now().Add(f.deadline); f.missing.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return report{}, fmt.Errorf("%d of %d sidecars are not configured after %v; %d streams were lost, %d refused: %v; %s",
				f.missing.Load(), len(fresh), f.deadline, f.lost, f.refused, f.losses, f.waiting(fresh))
		}
	}
	out := f.take()
	for _, s := range fresh {
		out.Configured = append(out.Configured, s.configured.Load())
	}
	return out, nil
}

// waiting describes an unconfigured sidecar for an error message.
func (f *fleet) waiting(fresh []*sidecar) string {
	for _, s := range fresh {
		if s.configured.Load() == 0 {
			return "the first that waits is " + s.describe()
		}
	}
	return "none waits"
}

func (f *fleet) disconnect() {
	f.closing.Store(true)
	var all sync.WaitGroup
	for _, s := range f.sidecars {
		all.Go(s.disconnect)
	}
	all.Wait()
	f.connected = 0
	f.missing.Store(0)
}
