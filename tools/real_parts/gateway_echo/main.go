// Server and client of the Gateway API's conformance tests for meshes, in place of the image echo-advanced.
//
// Under the name `client` the program calls a URL, and prints the answers as lines that the suite reads
// (conformance/utils/echo/parse.go). Under any other name it is the server, with the flags of the suite's
// manifests. The service of gRPC exchanges texts, so that no code is generated.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	service  = "proto.EchoTestService"
	patience = 5 * time.Second
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func main() {
	if filepath.Base(os.Args[0]) == "client" {
		if err := call(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	serve()
}

// serve runs the server until one of its listeners fails.
func serve() {
	var ports, secure list
	flag.Var(&ports, "port", "port of HTTP/1.1 and of HTTP/2 in plain text")
	flag.Var(&secure, "tls", "one of the ports, with TLS")
	rpc := flag.String("grpc", "7070", "port of gRPC")
	raw := flag.String("tcp", "9090", "port of TCP")
	certificate := flag.String("crt", "", "file of the certificate")
	key := flag.String("key", "", "file of the key")
	flag.Parse()
	if len(ports) == 0 {
		ports = list{"8080"}
	}
	failed := make(chan error)
	for _, port := range ports {
		server := &http.Server{Addr: ":" + port, Handler: http.HandlerFunc(echo), Protocols: new(http.Protocols)}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetHTTP2(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		go func() {
			if slices.Contains(secure, port) {
				failed <- server.ListenAndServeTLS(*certificate, *key)
			} else {
				failed <- server.ListenAndServe()
			}
		}()
	}
	go func() { failed <- serveGRPC(*rpc) }()
	go func() { failed <- serveTCP(*raw) }()
	log.Fatal(<-failed)
}

// echo answers with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	_, port, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
	fmt.Fprintf(w, "ServicePort=%s\nHost=%s\nURL=%s\nMethod=%s\nProto=%s\n", port, r.Host, r.URL, r.Method, r.Proto)
	fmt.Fprint(w, about(r.RemoteAddr, r.Header))
}

// about returns the lines of every answer: the caller's address, the request's headers, and this Pod.
func about(caller string, headers map[string][]string) string {
	host, _, _ := net.SplitHostPort(caller)
	name, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	return fmt.Sprintf("IP=%s\n%sHostname=%s\n", host, lines("RequestHeader", headers), name)
}

// lines returns a line for each value of each header; the values of a header keep their order.
func lines(field string, headers map[string][]string) string {
	var result strings.Builder
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			fmt.Fprintf(&result, "%s=%s:%s\n", field, name, value)
		}
	}
	return result.String()
}

func serveGRPC(port string) error {
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	method := grpc.MethodDesc{MethodName: "Echo", Handler: echoGRPC}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{method},
	}, nil)
	return server.Serve(listener)
}

func echoGRPC(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	if err := decode(new(wrapperspb.StringValue)); err != nil {
		return nil, err
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	return wrapperspb.String("Proto=GRPC\n" + about("", headers)), nil
}

// serveTCP sends each received line back.
func serveTCP(port string) error {
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			received := bufio.NewScanner(connection)
			for received.Scan() {
				fmt.Fprintln(connection, received.Text())
			}
		}()
	}
}

// answer is the answer to one call; `body` is what the server has written.
type answer struct {
	status  int
	headers map[string][]string
	body    string
}

// call makes the calls of a command line, and prints the answers, separated by empty lines.
func call(words []string) error {
	var headers list
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.Var(&headers, "H", "a header, as name:value")
	method := flags.String("method", http.MethodGet, "method of HTTP")
	count := flags.Int("count", 1, "number of calls")
	if len(words) == 0 {
		return fmt.Errorf("usage: client URL [--method=GET] [-H name:value]... [--count=1]")
	}
	// The suite writes the URL before the flags.
	if err := flags.Parse(words[1:]); err != nil {
		return err
	}
	target, err := url.Parse(words[0])
	if err != nil {
		return err
	}
	caller, end, err := callerOf(target, *method, headers)
	if err != nil {
		return err
	}
	defer end()
	for number := range *count {
		one, err := caller()
		if err != nil {
			return err
		}
		fmt.Println(printed(number, target, one))
	}
	return nil
}

// printed returns an answer as the suite reads it.
func printed(number int, target *url.URL, one answer) string {
	head := fmt.Sprintf("Url=%s\nStatusCode=%d\n%s", target, one.status, lines("ResponseHeader", one.headers))
	var result strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(head), "\n") {
		fmt.Fprintf(&result, "[%d] %s\n", number, line)
	}
	for _, line := range strings.Split(strings.TrimSpace(one.body), "\n") {
		fmt.Fprintf(&result, "[%d body] %s\n", number, line)
	}
	return result.String()
}

// callerOf returns a function that makes one call, and a function for the end of all calls.
func callerOf(target *url.URL, method string, headers list) (func() (answer, error), func(), error) {
	sent := http.Header{}
	for _, header := range headers {
		name, value, found := strings.Cut(header, ":")
		if !found {
			return nil, nil, fmt.Errorf("the header %s has no colon", strconv.Quote(header))
		}
		sent.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if target.Scheme == "grpc" {
		return grpcCaller(target.Host, sent)
	}
	client := &http.Client{
		Timeout:       patience,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	one := func() (answer, error) { return callHTTP(client, target, method, sent) }
	return one, client.CloseIdleConnections, nil
}

func callHTTP(client *http.Client, target *url.URL, method string, headers http.Header) (answer, error) {
	request, err := http.NewRequest(method, target.String(), nil)
	if err != nil {
		return answer{}, err
	}
	request.Header = headers.Clone()
	if host := headers.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

func grpcCaller(host string, headers http.Header) (func() (answer, error), func(), error) {
	connection, err := grpc.NewClient(host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	sent := metadata.MD{}
	for name, values := range headers {
		sent.Append(strings.ToLower(name), values...)
	}
	one := func() (answer, error) {
		ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(context.Background(), sent), patience)
		defer cancel()
		var received metadata.MD
		result := new(wrapperspb.StringValue)
		err := connection.Invoke(ctx, "/"+service+"/Echo", wrapperspb.String(""), result, grpc.Header(&received))
		// The suite compares the status with that of HTTP.
		return answer{http.StatusOK, received, result.GetValue()}, err
	}
	return one, func() { connection.Close() }, nil
}
