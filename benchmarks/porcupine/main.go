// Porcupine, a checker of linearizability, on the histories that nemesis judges.
//
// Without arguments: standard input has a line of JSON for each history, {"workload": ..., "operations": [...]}; standard
// output gets a line for each, "ok" or "illegal" and the seconds of checking. With arguments FILE WORKLOAD: reads a
// history of Jepsen, an operation in each line of EDN, and prints {"operations", "read_s", "check_s", "verdict"}.
//
// An operation of unknown outcome may have happened at any time after its call, or not at all. So it returns after all
// others, and its step is always legal: where it would change nothing it did not happen.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

func check(workload string, operations []porcupine.Operation) (string, float64) {
	start := time.Now()
	verdict := "illegal"
	if porcupine.CheckOperations(modelOf(workload), operations) {
		verdict = "ok"
	}
	return verdict, time.Since(start).Seconds()
}

func judgeLines() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var asked history
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		verdict, seconds := check(asked.Workload, asked.calls())
		fmt.Printf("%s %.9f\n", verdict, seconds)
	}
}

func judgeFile(path, workload string) {
	start := time.Now()
	operations, err := readHistory(path)
	if err != nil {
		panic(err)
	}
	read := time.Since(start).Seconds()
	verdict, checked := check(workload, operations)
	answer := map[string]any{
		"operations": len(operations), "read_s": read, "check_s": checked, "verdict": verdict,
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
}

func main() {
	if len(os.Args) == 3 {
		judgeFile(os.Args[1], os.Args[2])
	} else {
		judgeLines()
	}
}
