// A cluster of kfake brokers on 127.0.0.1 that answer as a maker's brokers do, and the lag of groups as franz-go's admin
// client computes it.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("a command is missing: serve or lag")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ExitOnError)
	switch arguments[0] {
	case "serve":
		name := flags.String("preset", "", "whose brokers: "+strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
		ports := flags.String("ports", "", "the port of each broker, comma-separated")
		control := flags.Int("control-port", 0, "the port that takes commands by HTTP")
		flags.Parse(arguments[1:])
		return serve(*name, *ports, *control)
	case "lag":
		servers := flags.String("bootstrap-servers", "", "host:port, comma-separated")
		flags.Parse(arguments[1:])
		return printLags(os.Stdout, strings.Split(*servers, ","), flags.Args())
	}
	return fmt.Errorf("there is no command %s; there are serve and lag", arguments[0])
}

// serve runs the cluster until SIGTERM or SIGINT.
func serve(name, ports string, control int) error {
	chosen, ok := presets[name]
	if !ok {
		return fmt.Errorf("there is no preset %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
	}
	numbers, err := numbersOf(ports)
	if err != nil {
		return err
	}
	running, err := start(chosen, numbers)
	if err != nil {
		return err
	}
	defer running.fake.Close()
	failed := make(chan error, 1)
	go func() { failed <- running.takeCommands(control) }()
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGTERM, os.Interrupt)
	select {
	case err := <-failed:
		return err
	case <-ending:
		return nil
	}
}

func numbersOf(ports string) ([]int, error) {
	var numbers []int
	for _, port := range strings.Split(ports, ",") {
		number, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("--ports: %w", err)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}
