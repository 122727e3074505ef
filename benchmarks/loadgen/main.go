// A load generator for discovery services: many proxies over mTLS, with one connection each, which acknowledge
// all responses. Commands are read from standard input, and each is answered with one line of JSON:
//
//	connect     open every stream, and wait until all have their first configuration
//	bump N      change the first assignment N times through the control port
//	idle MS     wait, and report responses in this time
//	disconnect  close every connection; delta proxies keep their resources for the next connect
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
)

// clientCredentials reads ca.pem, c.pem and c.key.
func clientCredentials(directory string) (credentials.TransportCredentials, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(directory, "c.pem"), filepath.Join(directory, "c.key"))
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
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: pool}), nil
}

func readFlags() (*fleet, error) {
	address := flag.String("address", "127.0.0.1:18000", "the discovery service")
	control := flag.String("control", "http://127.0.0.1:18001", "the control port's address")
	directory := flag.String("tls-dir", ".", "directory of ca.pem, c.pem and c.key")
	protocol := flag.String("protocol", "delta", "delta or sotw")
	proxies := flag.Int("proxies", 10, "connections")
	names := flag.Int("names", 1, "assignments that each subscribes to")
	types := flag.String("types", "eds", "eds, or mesh: clusters, endpoints, listeners and routes")
	parallel := flag.Int("parallel", 64, "connections opened at once; 0: all")
	slow := flag.Int("slow", 0, "how many of the proxies read next to nothing; nobody waits for them")
	deadline := flag.Duration("deadline", 2*time.Minute, "the longest wait for all acknowledgements")
	flag.Parse()

	if *protocol != "delta" && *protocol != "sotw" {
		return nil, fmt.Errorf("protocol %q is neither delta nor sotw", *protocol)
	}
	if *types != "eds" && *types != "mesh" {
		return nil, fmt.Errorf("types %q are neither eds nor mesh", *types)
	}
	secure, err := clientCredentials(*directory)
	if err != nil {
		return nil, err
	}
	out := &fleet{
		address: *address, control: *control, credentials: secure, delta: *protocol == "delta",
		mesh: *types == "mesh", parallel: *parallel, deadline: *deadline, resources: map[string]int64{}, losses: []string{},
	}
	for i := range *names {
		out.services = append(out.services, fmt.Sprintf("ns/svc-%d|80", i))
	}
	for i := range *proxies {
		out.proxies = append(out.proxies, &proxy{number: i, fleet: out, slow: i < *slow})
	}
	return out, nil
}

func (f *fleet) obey(command string, argument int) (report, error) {
	switch command {
	case "connect":
		return f.connect()
	case "bump":
		return f.bump(argument)
	case "idle":
		time.Sleep(time.Duration(argument) * time.Millisecond)
		return f.settle(), nil
	case "disconnect":
		f.disconnect()
		return f.settle(), nil
	}
	return report{}, fmt.Errorf("unknown command %q", command)
}

func run() error {
	all, err := readFlags()
	if err != nil {
		return err
	}
	answers := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		argument := 0
		if len(words) > 1 {
			if argument, err = strconv.Atoi(words[1]); err != nil {
				return err
			}
		}
		answer, err := all.obey(words[0], argument)
		if err != nil {
			return err
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
