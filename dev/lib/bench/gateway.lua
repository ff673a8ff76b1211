-- The requests of wrk, in GCM's format. Each names a different device, because a gateway recognises repeats.
--
--   wrk … -s gateway.lua URL -- KEY BODY-FILE FIRST [keyed]
--
-- In the body, each run of eight '@' becomes eight hexadecimal digits: a number that counts from FIRST. With `keyed`, the number is also
-- the Idempotency-Key.
local parts, number, prefix, ending

function init(args)
  number = tonumber(args[3])
  local file = assert(io.open(args[2], "rb"))
  local body = file:read("*a")
  file:close()
  parts = {}
  for part in (body .. "@@@@@@@@"):gmatch("(.-)@@@@@@@@") do parts[#parts + 1] = part end
  prefix = "POST /fcm/send HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: key=" .. args[1]
    .. "\r\nContent-Type: application/json\r\nContent-Length: " .. #body
  ending = args[4] == "keyed" and "\r\nIdempotency-Key: %08x\r\n\r\n" or "\r\n\r\n"
end

function request()
  number = number + 1
  return prefix .. string.format(ending, number) .. table.concat(parts, string.format("%08x", number))
end
