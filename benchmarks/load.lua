-- wrk's side of a load: the same body in many conversations, and the exact counts at the end.
--   wrk … -s load.lua URL -- BODY_FILE KEY SESSIONS

local requests, turn = {}, 0

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  local body = file:read("*a")
  file:close()
  for session = 1, tonumber(arguments[3]) do
    requests[session] = wrk.format("POST", nil, {
      ["authorization"] = "Bearer " .. arguments[2],
      ["content-type"] = "application/json",
      ["x-session-id"] = "session-" .. session,
    }, body)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "seconds": %f, "non_2xx": %d, "socket_errors": %d, "p50_us": %f}\n',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, latency:percentile(50)))
end
