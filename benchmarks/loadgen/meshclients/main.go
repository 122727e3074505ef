// Light sidecars for a real control plane: each has its own certificate, one connection and one delta ADS
// stream, subscribes as Envoy does (clusters and listeners by wildcard; endpoints, routes and secrets by the
// names in them), and acknowledges everything. Commands are read from standard input, and each is answered
// with one line of JSON:
//
//	connect COUNT           open streams up to COUNT, wait until each has all requested resources
//	wait COUNT QUIET LIMIT  wait until COUNT sidecars have a response and QUIET ms are silent, or for LIMIT ms
//	disconnect              close every connection
//
// An answer lists all responses since the previous answer; times are nanoseconds of the system's clock.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"meshwright.benchmarks/loadgen/wire"
)

func readFlags() (*fleet, error) {
	address := flag.String("address", "127.0.0.1:15128", "the control plane")
	directory := flag.String("tls-dir", ".", "directory of ca.pem and, for each sidecar, NAME.pem and NAME.key; empty: plaintext")
	names := flag.String("names", "", "file of the sidecars' names, one a line; after a blank, its Node in base64, if it is to say more than its name's first part")
	parallel := flag.Int("parallel", 64, "connections opened at once; 0: all")
	deadline := flag.Duration("deadline", 2*time.Minute, "the longest wait for the first configuration")
	flag.Parse()

	text, err := os.ReadFile(*names)
	if err != nil {
		return nil, err
	}
	out := &fleet{address: *address, directory: *directory, parallel: *parallel, deadline: *deadline}
	for line := range strings.Lines(string(text)) {
		name, told, _ := strings.Cut(strings.TrimSpace(line), " ")
		node, err := base64.StdEncoding.DecodeString(told)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(node) == 0 {
			identifier, _, _ := strings.Cut(name, ".")
			node = wire.Node(identifier)
		}
		out.sidecars = append(out.sidecars, &sidecar{number: len(out.sidecars), name: name, node: node, fleet: out})
	}
	return out, nil
}

func (f *fleet) obey(words []string) (report, error) {
	var arguments []int
	for _, word := range words[1:] {
		number, err := strconv.Atoi(word)
		if err != nil {
			return report{}, err
		}
		arguments = append(arguments, number)
	}
	switch {
	case words[0] == "connect" && len(arguments) == 1:
		return f.connect(arguments[0])
	case words[0] == "wait" && len(arguments) == 3:
		milliseconds := func(number int) time.Duration { return time.Duration(number) * time.Millisecond }
		return f.wait(arguments[0], milliseconds(arguments[1]), milliseconds(arguments[2])), nil
	case words[0] == "disconnect" && len(arguments) == 0:
		f.disconnect()
		return f.take(), nil
	}
	return report{}, fmt.Errorf("unknown command %q", words)
}

func run() error {
	all, err := readFlags()
	if err != nil {
		return err
	}
	output := bufio.NewWriter(os.Stdout)
	answers := json.NewEncoder(output)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		answer, err := all.obey(words)
		if err != nil {
			return err
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
		if err := output.Flush(); err != nil {
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
