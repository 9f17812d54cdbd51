// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// A transfer over one bottleneck in ns-3, for the comparison with `onramp sim` (README.md next to it).
//
//   sender ── point-to-point device: queue, rate, delay ── sink
//
// Hosts take no time, as in the simulator: a window reaches the queue in one burst. The output is a line of CSV:
//
//   control,segments_per_ack,seconds,retransmitted,drops,exit_seconds,exit_window
//
// "seconds" go from when the first data were sent to when the sink had the last byte, "exit_seconds" from the same
// moment to when the first finite threshold was set; "exit_window" is the window at that moment, in segments.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/point-to-point-module.h>

#include <cstdio>

using namespace ns3;

namespace
{

// 1500 bytes are an IP packet with the headers of IP (20) and TCP (20) and the timestamps (12).
constexpr uint32_t PACKET_BYTES = 1500;
constexpr uint32_t SEGMENT_BYTES = PACKET_BYTES - 52;
// The device puts a header of PPP before each packet, which the simulator has not: the rate makes up for it.
constexpr uint32_t PPP_BYTES = 2;
constexpr uint16_t PORT = 9;
// More than any window.
constexpr uint32_t BUFFER_BYTES = 200'000'000;

struct Watch
{
    uint64_t bytes = 0;
    uint64_t received = 0;
    uint64_t retransmitted = 0;
    uint64_t drops = 0;
    SequenceNumber32 next{1};
    uint32_t window = 0;
    Time began = Seconds(-1);
    Time ended = Seconds(-1);
    Time exit = Seconds(-1);
    uint32_t exitWindow = 0;

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
        if (began.IsStrictlyNegative())
        {
            began = Simulator::Now();
        }
        if (header.GetSequenceNumber() < next)
        {
            ++retransmitted;
        }
        next = std::max(next, header.GetSequenceNumber() + packet->GetSize());
    }

    void Window(uint32_t, uint32_t bytes)
    {
        window = bytes;
    }

    void Threshold(uint32_t, uint32_t threshold)
    {
        // The first value is no threshold.
        if (exit.IsStrictlyNegative() && threshold < UINT32_MAX)
        {
            exit = Simulator::Now();
            exitWindow = window / SEGMENT_BYTES;
        }
    }

    void Received(Ptr<const Packet> packet, const Address&)
    {
        received += packet->GetSize();
        if (received >= bytes && ended.IsStrictlyNegative())
        {
            ended = Simulator::Now();
        }
    }

    void Dropped(Ptr<const Packet>)
    {
        ++drops;
    }

    // Whole segments, all of them at once; the buffer has room for them.
    void Write(Ptr<Socket> socket)
    {
        for (uint64_t left = bytes; left > 0;)
        {
            const auto size = static_cast<uint32_t>(std::min<uint64_t>(left, SEGMENT_BYTES));
            NS_ABORT_UNLESS(socket->Send(Create<Packet>(size)) == static_cast<int>(size));
            left -= size;
        }
    }
};

double
Since(Time begin, Time end)
{
    return end.IsStrictlyNegative() ? -1.0 : (end - begin).GetSeconds();
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string control;
    uint64_t rate = 0;
    uint64_t oneWayUs = 0;
    uint32_t queuePackets = 0;
    uint32_t segmentsPerAck = 1;
    Watch watch;
    CommandLine command(__FILE__);
    command.AddValue("control", "newreno, linux-reno, cubic (without HyStart) or cubic-hystart", control);
    command.AddValue("rate", "rate of the bottleneck, bit/s of IP packets", rate);
    command.AddValue("one-way-us", "propagation delay of each direction, microseconds", oneWayUs);
    command.AddValue("queue", "packets before the bottleneck, that in transmission included", queuePackets);
    command.AddValue("bytes", "bytes to transfer", watch.bytes);
    command.AddValue("segments-per-ack", "segments that one acknowledgment waits for", segmentsPerAck);
    command.Parse(argc, argv);

    const std::map<std::string, std::string> types{{"newreno", "ns3::TcpNewReno"},
                                                   {"linux-reno", "ns3::TcpLinuxReno"},
                                                   {"cubic", "ns3::TcpCubic"},
                                                   {"cubic-hystart", "ns3::TcpCubic"}};
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(types.at(control))));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(control == "cubic-hystart"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(segmentsPerAck));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER_BYTES));

    NodeContainer nodes(2);
    PointToPointHelper link;
    // Without it there is a queueing discipline above the device, which drops unseen.
    link.DisableFlowControl();
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate * (PACKET_BYTES + PPP_BYTES) / PACKET_BYTES)));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(oneWayUs)));
    // The device takes what it transmits out of its queue.
    const QueueSize limit(QueueSizeUnit::PACKETS, queuePackets - 1);
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(limit));
    const NetDeviceContainer devices = link.Install(nodes);
    // The way back is never the bottleneck.
    devices.Get(1)->SetAttribute("DataRate", DataRateValue(DataRate("1Gbps")));
    DynamicCast<PointToPointNetDevice>(devices.Get(1))
        ->GetQueue()
        ->SetAttribute("MaxSize", QueueSizeValue(QueueSize("1000000p")));
    DynamicCast<PointToPointNetDevice>(devices.Get(0))
        ->GetQueue()
        ->TraceConnectWithoutContext("Drop", MakeCallback(&Watch::Dropped, &watch));

    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("192.0.2.0", "255.255.255.0");
    const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    sink.Install(nodes.Get(1)).Get(0)->TraceConnectWithoutContext("Rx",
                                                                  MakeCallback(&Watch::Received, &watch));

    Ptr<Socket> socket = Socket::CreateSocket(nodes.Get(0), TcpSocketFactory::GetTypeId());
    socket->TraceConnectWithoutContext("Tx", MakeCallback(&Watch::Sent, &watch));
    socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Watch::Window, &watch));
    socket->TraceConnectWithoutContext("SlowStartThreshold", MakeCallback(&Watch::Threshold, &watch));
    socket->SetConnectCallback(MakeCallback(&Watch::Write, &watch), MakeNullCallback<void, Ptr<Socket>>());
    // The sink listens by then.
    Simulator::Schedule(Seconds(1), [&] { socket->Connect(InetSocketAddress(interfaces.GetAddress(1), PORT)); });

    Simulator::Stop(Seconds(1000));
    Simulator::Run();
    std::printf("%s,%u,%.6f,%lu,%lu,%.6f,%u\n",
                control.c_str(),
                segmentsPerAck,
                Since(watch.began, watch.ended),
                watch.retransmitted,
                watch.drops,
                Since(watch.began, watch.exit),
                watch.exitWindow);
    Simulator::Destroy();
    return 0;
}
